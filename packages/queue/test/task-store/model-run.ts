import { seededRandom } from '@millrace/kit/random';
import fc from 'fast-check';
import { expect } from 'vitest';
import { auditFault, auditToWire } from '../../src/core/audit.js';
import { never } from '../../src/core/flow.js';
import type { Task, WholeTask } from '../../src/core/task.js';
import type { TaskFilter } from '../../src/storage/port/task-list.js';
import { sendSignal } from '../../src/storage/port/flow-run.js';
import { readRuns } from '../../src/storage/port/flow-runs.js';
import type { NewTask, Settlement, TaskStore } from '../../src/storage/port/task-store.js';
import { noon, settlementOf, someAttempt, someConfig } from './fixture.js';

/** One operation on both stores; numbers select existing items. */
export type Operation = readonly [kind: Kind, ...numbers: number[]];
type Kind = (typeof kinds)[number] | (typeof flowKinds)[number];

const kinds = [
  'insert',
  'insert',
  'claim',
  'claim',
  'claim',
  'settle',
  'settle',
  'extend',
  'expire',
  'ended',
  'redrive',
  'purge',
  'cancel',
  'cancel_pending',
  'update',
  'pause',
  'config',
  'delete_queue',
  'delete_finished',
  'delete_tombstones',
  'wait',
] as const;

const flowKinds = ['insert_flow', 'steps', 'signal'] as const;

const listOf = (all: readonly Kind[]) =>
  fc.array(
    fc.tuple(fc.constantFrom(...all), ...Array.from({ length: 5 }, () => fc.nat({ max: 9_999 }))),
    { minLength: 5, maxLength: 60 },
  ) as fc.Arbitrary<Operation[]>;

export const operations = listOf(kinds);
/** With dependencies, children, steps, suspensions and signals. */
export const flowOperations = listOf([...kinds, ...flowKinds]);

const queues = ['mail', 'post'];
const filters: readonly TaskFilter[] = [
  {},
  { statuses: ['PENDING'] },
  { statuses: ['IN_FLIGHT'] },
  { statuses: ['SUCCEEDED', 'DEAD'] },
  { statuses: ['DEAD', 'PENDING'], handlerRef: 'handler-1' },
  { groupKey: 'a' },
  { createdFrom: noon + 1, createdBefore: noon + 2_000, handlerRef: 'handler-0' },
];
const createdOrders = ['newest', 'oldest'] as const;
const allOrders = ['newest', 'oldest', 'next'] as const;
const groups = [null, 'a', null, 'a', 'ab'];

/** Runs the same operations on two stores and checks that results and final state are equal. */
export class ModelRun {
  readonly #random = seededRandom(7);
  readonly #ids: string[] = [];
  /** Every claim there ever was: also those whose lease is lost. */
  readonly #claims: WholeTask[] = [];
  #now = noon;
  #tokens = 0;
  #lists = 0;
  #fifo = false;
  #hasFlows = false;

  constructor(
    private readonly model: TaskStore,
    private readonly store: TaskStore,
  ) {}

  async run(list: readonly Operation[]): Promise<void> {
    this.#fifo = list.length % 2 === 0;
    this.#hasFlows = list.some(([kind]) => (flowKinds as readonly string[]).includes(kind));
    for (const queue of queues) await this.#putQueue(queue);
    for (const [kind, ...numbers] of list) {
      await this.#do(kind, numbers as [number, number, number, number, number]);
      await this.#compare();
    }
    await this.#compareTasks();
  }

  /** Calls both, and expects equal results. */
  async #both<Answer>(call: (store: TaskStore) => Promise<Answer>): Promise<Answer> {
    const expected = await call(this.model);
    expect(plain(await call(this.store))).toEqual(plain(expected));
    return expected;
  }

  async #do(kind: Operation[0], [a, b, c, d, e]: [number, number, number, number, number]) {
    const queue = queues[a % 2]!;
    const act = { queue, now: this.#now, by: 'ada' };
    switch (kind) {
      case 'insert': {
        const tasks = Array.from({ length: 1 + (b % 4) }, (_, i) =>
          this.#newTask(queue, c + i, d + 7 * i, e + 3 * i),
        );
        return this.#insert(tasks);
      }
      case 'insert_flow': {
        const parents = this.#some(d, e % 2);
        const tasks = Array.from({ length: 1 + (b % 3) }, (_, i) => {
          const on = (c + i) % 3 === 0 ? ('end' as const) : ('success' as const);
          const task = this.#newTask(queue, c + i, d + 7 * i, e + 3 * i);
          const dependsOn = [...new Set(this.#some(c + i, e % 3))]
            .filter((id) => id !== task.id)
            .map((id) => ({ id, on }));
          const flow = {
            ...(dependsOn.length > 0 && { dependsOn }),
            ...(parents[0] && { parentId: parents[0] }),
          };
          return Object.keys(flow).length > 0 ? { ...task, flow } : task;
        });
        return this.#insert(tasks);
      }
      case 'steps': {
        const claim = this.#claims.at(-1 - (a % (this.#claims.length || 1)));
        if (!claim) return;
        const steps = [{ name: `step-${b % 3}`, result: String(c), consumes: [`s${d % 4}`] }];
        const record = { id: claim.id, token: claim.lease!.token, now: this.#now, steps };
        await this.#both((store) => store.recordSteps({ ...record, maxSteps: 2 }));
        return;
      }
      case 'signal': {
        const [id] = this.#some(a, 1);
        if (id === undefined) return;
        const signal = { id: `s${b % 4}`, name: `n${c % 2}`, payload: String(d) };
        await this.#both((store) =>
          store.runFlow(() => sendSignal(id, signal, this.#now), this.#now),
        );
        return;
      }
      case 'claim':
        return this.#claim(queue, b, c, d);
      case 'settle':
        return this.#settle(a, b, c);
      case 'extend': {
        const claim = this.#claims[a % (this.#claims.length || 1)];
        if (!claim) return;
        const { id, lease } = claim;
        const change = { id, token: lease!.token, isAsync: b % 2 === 0, now: this.#now };
        const progress =
          d % 2 === 0 ? { percent: d % 101, message: null, at: this.#now } : undefined;
        await this.#both((store) =>
          store.extendLease({ ...change, expiresAt: this.#now + (c % 5_000), progress }),
        );
        return;
      }
      case 'expire':
        await this.#both((store) => store.expireTasks({ now: this.#now, limit: 1 + (b % 5) }));
        return;
      case 'ended':
        await this.#both((store) => store.endedLeases({ now: this.#now, limit: 1 + (b % 9) }));
        return;
      case 'redrive':
      case 'purge': {
        const ids = this.#some(b, c % 6);
        const change = { ...act, ids, diedBy: this.#now - (d % 3) * 500, selector: { ids } };
        const dueAt = (index: number) => this.#now + index * (e % 300);
        await this.#both((store) => store.actOnDead({ ...change, action: kind, dueAt }));
        return;
      }
      case 'cancel':
      case 'cancel_pending':
      case 'update':
        return this.#change(kind, act, [b, c, d, e]);
      case 'pause':
        await this.#both((store) => store.setPaused({ ...act, paused: b % 3 === 0 }));
        return;
      case 'config':
        if (b % 3 === 0) this.#fifo = !this.#fifo;
        return this.#putQueue(queue);
      case 'delete_queue': {
        const outcome = await this.#both((store) => store.deleteQueue(act));
        if (outcome === 'deleted' && b % 2 === 0) await this.#putQueue(queue);
        return;
      }
      case 'delete_finished': {
        const status = b % 2 === 0 ? ('SUCCEEDED' as const) : ('DEAD' as const);
        const request = { queue, status, endedBefore: this.#now - (c % 2_000), now: this.#now };
        await this.#both((store) => store.deleteFinished({ ...request, limit: 1_000 }));
        return;
      }
      case 'delete_tombstones':
        await this.#both((store) => store.deleteTombstones({ now: this.#now, limit: 1_000 }));
        return;
      case 'wait':
        this.#now += b % 20 === 0 ? 86_400_000 : (c % 40) * 50;
    }
  }

  async #insert(tasks: readonly NewTask[]): Promise<void> {
    // PostgreSQL stores tasks with a unique key after the others of one call, which decides only
    // what is refused if the queue becomes full on the way.
    const keyed = tasks.filter(({ uniqueKey }) => uniqueKey);
    const others = tasks.filter((task) => !keyed.includes(task));
    const isLimited = tasks.some(({ maxPending }) => maxPending > 0);
    const isMixed = isLimited && keyed.length > 0 && others.length > 0;
    for (const part of isMixed ? [keyed, others] : [tasks]) {
      await this.#both((store) => store.insertTasks(part, this.#now));
    }
  }

  async #change(
    kind: 'cancel' | 'cancel_pending' | 'update',
    act: { queue: string; now: number; by: string },
    [a, b, c, d]: [number, number, number, number],
  ): Promise<void> {
    const ids = this.#some(a, kind === 'cancel_pending' ? b % 6 : 1);
    const [id] = ids;
    const { queue, ...by } = { ...act, selector: { ids } };
    const message = `because of ${c}`;
    if (kind === 'cancel_pending') {
      await this.#both((store) => store.cancelPending({ ...by, queue, ids, message }));
    } else if (id !== undefined && kind === 'cancel') {
      const attempt = (task: { attempt: number }, now: number) =>
        someAttempt({ attempt: task.attempt, endedAt: now, errorType: 'CANCELLED' });
      await this.#both((store) => store.cancelTask({ ...by, id, message, attempt }));
    } else if (id !== undefined) {
      const dueAt = c % 3 === 0 ? undefined : this.#now + ((c % 20) - 5) * 100;
      const priority = d % 2 === 0 ? d % 10 : undefined;
      const action = d % 3 === 0 ? ('run_now' as const) : ('update' as const);
      await this.#both((store) => store.updateTask({ ...by, id, action, dueAt, priority }));
    }
  }

  #newTask(queue: string, a: number, b: number, c: number): NewTask {
    const old = a % 5 === 0 ? this.#ids[b % (this.#ids.length || 1)] : undefined;
    const id = old ?? this.#random.ulid(noon);
    if (!old) this.#ids.push(id);
    return {
      id,
      queue: a % 17 === 1 ? 'none' : queue,
      handlerRef: `handler-${a % 2}`,
      payload: Buffer.alloc(c % 7 === 0 ? 3_000 : c % 50, c),
      payloadContentType: 'text/plain',
      headers: c % 3 === 0 ? { 'x-a': String(c) } : {},
      priority: a % 3 === 0 ? b % 10 : 4,
      groupKey: groups[c % groups.length]!,
      dueAt: this.#now + (b % 3 === 0 ? (b % 20) * 100 : -(b % 60)),
      expiresAt: c % 4 === 0 ? this.#now + 1 + (b % 1_500) : null,
      submittedBy: 'shop',
      maxPending: a % 11 === 0 ? 5 : 0,
      ...(b % 4 === 0 && {
        uniqueKey: `key-${c % 3}`,
        uniqueUntil: c % 2 === 0 ? null : this.#now + 1 + (a % 2_000),
      }),
    };
  }

  async #claim(queue: string, a: number, b: number, c: number): Promise<void> {
    const tokens = Array.from({ length: 20 }, () => `token-${++this.#tokens}`);
    const claimed = await this.#both((store) => {
      const left = [...tokens];
      return store.claimDue({
        queue,
        limit: a % 7,
        now: this.#now,
        nodeId: `node-${b % 3}`,
        leaseExpiresAt: this.#now + (b % 3_000),
        newToken: () => left.shift()!,
        maxInFlight: 1 + (c % 12),
        dispatchPerSecond: c % 3 === 0 ? 3 : 0,
        fifoGroups: this.#fifo,
      });
    });
    this.#claims.push(...claimed);
  }

  async #settle(a: number, b: number, c: number): Promise<void> {
    if (this.#claims.length === 0) return;
    const settlements = Array.from({ length: 1 + (a % 3) }, (_, i) => {
      const kind = (b + i) % (this.#hasFlows ? 6 : 5);
      const dueAt = this.#now + (c % 4) * 300;
      const verdict =
        kind < 2
          ? ({ kind: 'succeeded' } as const)
          : kind === 2
            ? ({ kind: 'retry', dueAt } as const)
            : kind === 3
              ? ({ kind: 'dead', reason: 'PERMANENT' } as const)
              : kind === 4
                ? ({ kind: 'handed_back', dueAt } as const)
                : ({ kind: 'suspended', dueAt: this.#now, flow: {} } as const);
      // Young claims more often than old ones.
      const back = (c + i * 5) % Math.min(this.#claims.length, i === 2 ? 99 : 8);
      const error = { errorType: `E${b % 2}`, message: 'no', httpStatus: 500 + (c % 2), at: 1 };
      return settlementOf(this.#claims.at(-1 - back)!, verdict, {
        now: this.#now,
        ...(kind === 0 ? { result: JSON.stringify({ a }) } : { error }),
        ...(kind === 1 && c % 5 === 0 && { resultDropped: true }),
        ...(kind === 5 && this.#suspension(a, c)),
        ...(kind === 5 &&
          c % 2 === 0 && { steps: [{ name: 'wait', consumes: ['s0'] }], maxSteps: 3 }),
      });
    });
    // PostgreSQL stores suspensions before other outcomes of one call, which matters only if both
    // are about one lease.
    const isMixed = settlements.some(({ suspension }) => suspension);
    const once = settlements.filter(
      ({ id }, i) => !isMixed || settlements.findIndex((each) => each.id === id) === i,
    );
    // A store may answer with the flow as it was claimed; what it stored is compared later.
    await this.#both(async (store) =>
      (await store.settle(once)).map((result) =>
        'task' in result ? { ...result, task: { ...result.task, flow: null } } : result,
      ),
    );
  }

  #suspension(a: number, c: number): Pick<Settlement, 'suspension' | 'error'> {
    const tasks = this.#some(a, c % 3);
    const suspension = {
      ...(c % 3 === 0 && { until: this.#now + (a % 30) * 100 }),
      ...(c % 4 > 0 && { signals: [`n${a % 2}`] }),
      ...(tasks.length > 0 && { tasks }),
      mode: c % 5 === 0 ? ('all' as const) : ('any' as const),
    };
    const isEmpty = Object.keys(suspension).length === 1;
    return {
      suspension: isEmpty ? { ...suspension, signals: ['n0'] } : suspension,
      error: undefined,
    };
  }

  async #putQueue(queue: string): Promise<void> {
    const result = { made: '' };
    for (const store of [this.model, this.store]) {
      const put = { queue, config: someConfig(), now: this.#now, by: 'ada' };
      const { queue: written, ...rest } = await store.putQueue(put);
      const { incarnation: _own, ...shown } = written!;
      const text = JSON.stringify({ ...rest, shown });
      if (result.made) expect(text).toBe(result.made);
      result.made = text;
    }
  }

  #some(from: number, count: number): string[] {
    if (this.#ids.length === 0) return [];
    return Array.from({ length: count }, (_, i) => this.#ids[(from + 3 * i) % this.#ids.length]!);
  }

  /** All reads of a store. */
  async #compare(): Promise<void> {
    for (const queue of queues) {
      await this.#compareCounts(queue);
      await this.#both((store) => store.deadGroups({ queue, limit: 10 }));
      for (const order of ['newest_first', 'oldest_first'] as const) {
        const filter = order === 'newest_first' ? {} : { errorType: 'E1' };
        const request = { queue, filter, order, limit: 3, maxBytes: 20_000 };
        const { next } = await this.#both((store) => store.deadTasks(request));
        if (next) await this.#both((store) => store.deadTasks({ ...request, after: next }));
      }
      await this.#compareLists(queue);
      for (const groupKey of ['a', 'ab']) {
        const id = this.#ids.at(-1) ?? '';
        await this.#both((store) => store.groupIsBusy({ queue, groupKey, id }));
      }
    }
    await this.#both(async (store) => {
      const { dueByQueue, upkeepAt } = await store.nextEventAt();
      // A claim that passes over an expired task may hide that it is due: upkeep ends it first.
      if (upkeepAt !== undefined && upkeepAt <= this.#now) return { upkeepAt };
      // What is due is due, whenever that was.
      const due = queues.map((queue) => {
        const at = dueByQueue.get(queue);
        return at === undefined || at > this.#now ? at : 'due';
      });
      return { due, upkeepAt };
    });
  }

  /** The oldest due time may be that of an expired task, or the first of one that can still run. */
  async #compareCounts(queue: string): Promise<void> {
    const filter: TaskFilter = { statuses: ['PENDING'] };
    const { tasks } = await this.model.listTasks({ queue, filter, order: 'oldest', limit: 1_000 });
    const isExpired = ({ expiresAt }: Task) => expiresAt !== null && expiresAt <= this.#now;
    const dueTimes = tasks.filter((task) => !isExpired(task)).map(({ dueAt }) => dueAt!);
    const first = Math.min(never, ...dueTimes);
    const expired = tasks.filter((task) => isExpired(task) && task.dueAt! < first);
    await this.#both(async (store) => {
      const { waits, oldestDueAt, ...counts } = await store.counts(queue);
      const isPassed = expired.some(({ dueAt }) => dueAt === oldestDueAt);
      return {
        ...counts,
        oldestDueAt: (isPassed ? first : oldestDueAt) ?? never,
        waits: Object.fromEntries(Object.entries(waits).filter(([, count]) => count > 0)),
      };
    });
  }

  /** Two pages of a list, another one each time, and its count. */
  async #compareLists(queue: string): Promise<void> {
    const turn = this.#lists++;
    const filter = filters[turn % filters.length]!;
    const orders = filter.statuses?.join() === 'PENDING' ? allOrders : createdOrders;
    const request = { queue, filter, order: orders[turn % orders.length]!, limit: 3 };
    const { next } = await this.#both((store) => store.listTasks(request));
    if (next) await this.#both((store) => store.listTasks({ ...request, after: next }));
    await this.#both((store) => store.countTasks({ queue, filter }));
  }

  async #compareTasks(): Promise<void> {
    for (const id of this.#ids) {
      const task = await this.#both((store) => store.getTask(id));
      if (!task || !('flow' in task)) continue;
      await this.#both(async (store) => JSON.stringify([...(await readRuns(store, [task]))]));
    }
    const records = await this.#both((store) => store.auditPage({ limit: 1_000 }));
    let last;
    for (const record of records.toReversed()) {
      expect(auditFault(last, auditToWire(record))).toBeUndefined();
      last = auditToWire(record);
    }
  }
}

/** Buffers and plain arrays of bytes are the same to a reader. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, each: unknown) => {
      // What is undefined in a flow is not stored.
      if (key === 'flow' && each) return JSON.parse(JSON.stringify(each)) as unknown;
      return each instanceof Uint8Array ? Buffer.from(each).toString('base64') : (each ?? null);
    }) ?? 'null',
  );
}
