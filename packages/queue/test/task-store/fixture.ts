import { seededRandom, type Random } from '@millrace/kit/random';
import { afterEach, beforeEach, expect } from 'vitest';
import type { QueueConfig } from '../../src/core/queue.js';
import type { Attempt, FullTask, Task, Tombstone, WholeTask } from '../../src/core/task.js';
import { sampleConfig } from '../../src/delivery/delivery.test-support.js';
import type {
  ClaimRequest,
  InsertResult,
  NewTask,
  DeadChange,
  Settlement,
  SettleResult,
  TaskStore,
  Verdict,
} from '../../src/storage/port/task-store.js';

export interface StoreMaker {
  /** An empty store. */
  open(): Promise<TaskStore>;
  /** The same store as another process would find it. */
  reopen(store: TaskStore): Promise<TaskStore>;
  /** Called after each test with the stores that are still open. */
  close(store: TaskStore): Promise<void>;
}

export const noon = Date.UTC(2026, 0, 5, 12);

export function someTask(over: Pick<NewTask, 'id' | 'dueAt'> & Partial<NewTask>): NewTask {
  return {
    queue: 'mail',
    handlerRef: 'mail.send',
    payload: Buffer.from('hello'),
    payloadContentType: 'text/plain',
    headers: {},
    priority: 4,
    groupKey: null,
    expiresAt: null,
    submittedBy: 'shop',
    maxPending: 0,
    ...over,
  };
}

/** A store for each test, and short ways to say what is done to it. */
export class Fixture {
  store!: TaskStore;
  random!: Random;
  #tokens = 0;

  constructor(private readonly maker: StoreMaker) {
    beforeEach(async () => {
      this.random = seededRandom(1);
      this.store = await maker.open();
    });
    afterEach(() => maker.close(this.store));
  }

  async reopen(): Promise<void> {
    this.store = await this.maker.reopen(this.store);
  }

  id(): string {
    return this.random.ulid(noon);
  }

  async queue(name = 'mail'): Promise<void> {
    await this.store.putQueue({ queue: name, config: someConfig(), now: noon, by: 'ada' });
  }

  newTask(over: Partial<NewTask> = {}): NewTask {
    return someTask({ id: this.id(), dueAt: noon, ...over });
  }

  /** Stores a task and returns its id. */
  async submit(over: Partial<NewTask> = {}, now = noon): Promise<string> {
    const [result] = await this.store.insertTasks([this.newTask(over)], now);
    expect(result?.kind).toBe('stored');
    return storedTask(result!).id;
  }

  claim(over: Partial<ClaimRequest> = {}): Promise<WholeTask[]> {
    const now = over.now ?? noon;
    return this.store.claimDue({
      queue: 'mail',
      limit: 10,
      now,
      nodeId: 'node-1',
      leaseExpiresAt: now + 45_000,
      newToken: () => `token-${++this.#tokens}`,
      maxInFlight: 1_000,
      dispatchPerSecond: 0,
      fifoGroups: false,
      ...over,
    });
  }

  /** Claims and returns the ids. */
  async claimIds(over: Partial<ClaimRequest> = {}): Promise<string[]> {
    return (await this.claim(over)).map((task) => task.id);
  }

  async claimOne(over: Partial<ClaimRequest> = {}): Promise<WholeTask> {
    const [task] = await this.claim({ limit: 1, ...over });
    if (!task) throw new Error('There was nothing to claim');
    return task;
  }

  async settle(
    task: WholeTask,
    verdict: Verdict,
    over: Partial<Settlement> = {},
  ): Promise<SettleResult> {
    const [result] = await this.store.settle([settlementOf(task, verdict, over)]);
    return result!;
  }

  /** Submits a task, claims it and lets it die. */
  async die(
    over: Partial<NewTask> = {},
    at = noon,
    error: { errorType?: string; httpStatus?: number | null } = {},
  ): Promise<string> {
    const id = await this.submit({ ...over, dueAt: at, priority: 9 }, at);
    const task = await this.claimOne({ now: at, queue: over.queue ?? 'mail' });
    expect(task.id).toBe(id);
    await this.settle(
      task,
      { kind: 'dead', reason: 'PERMANENT' },
      {
        now: at,
        error: {
          errorType: error.errorType ?? 'HTTP_4XX',
          message: 'no',
          httpStatus: error.httpStatus === undefined ? 404 : error.httpStatus,
          at,
        },
      },
    );
    return id;
  }

  async redrive(ids: readonly string[], over: Partial<DeadChange> = {}): Promise<string[]> {
    const result = await this.store.actOnDead({
      action: 'redrive',
      queue: 'mail',
      ids,
      diedBy: noon + 3_600_000,
      now: noon + 1_000,
      by: 'ada',
      selector: { ids },
      dueAt: () => noon + 1_000,
      ...over,
    });
    return result.ids;
  }

  async task(id: string): Promise<WholeTask> {
    const {
      result: _result,
      resultDropped: _dropped,
      progress: _progress,
      uniqueKey: _key,
      ...task
    } = await this.fullTask(id);
    return task;
  }

  async fullTask(id: string): Promise<FullTask> {
    const found = await this.store.getTask(id);
    if (!found || 'purgedAt' in found) throw new Error(`There is no task ${id}`);
    return found;
  }

  async tombstone(id: string): Promise<Tombstone> {
    const found = await this.store.getTask(id);
    if (!found || !('purgedAt' in found)) throw new Error(`There is no tombstone ${id}`);
    return found;
  }
}

export function storedTask(result: InsertResult): Task {
  if (result.kind !== 'stored' && result.kind !== 'existing') throw new Error(result.kind);
  return result.task;
}

export function settlementOf(
  task: WholeTask,
  verdict: Verdict,
  over: Partial<Settlement> = {},
): Settlement {
  const now = over.now ?? noon + 100;
  return {
    id: task.id,
    token: task.lease!.token,
    now,
    verdict,
    attempt: someAttempt({ attempt: task.attempt, endedAt: now }),
    ...over,
  };
}

export function someAttempt(over: Partial<Attempt> = {}): Attempt {
  return {
    attempt: 1,
    redrive: 0,
    startedAt: noon,
    endedAt: noon + 100,
    durationMs: 100,
    outcome: 'FAILED',
    errorType: 'HTTP_5XX',
    message: 'Bad Gateway',
    httpStatus: 502,
    retryAfterMs: null,
    nextAttemptAt: null,
    responseSnippet: null,
    url: 'https://handler.example/run',
    remoteIp: '192.0.2.7',
    nodeId: 'node-1',
    traceId: null,
    ...over,
  };
}

export function someConfig(description = ''): QueueConfig {
  return { ...sampleConfig(), description };
}
