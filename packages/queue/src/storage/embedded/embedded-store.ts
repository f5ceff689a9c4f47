import type { Database, RowReader } from '@millrace/db';
import { messageOf, Refusal } from '@millrace/kit/errors';
import type { Random } from '@millrace/kit/random';
import type { AuditRecord } from '../../core/audit.js';
import type { Queue, QueueCounts } from '../../core/queue.js';
import type { Task, Tombstone, WholeTask } from '../../core/task.js';
import {
  StorageUnavailable,
  type AuditAsk,
  type ClaimAsk,
  type DeadAsk,
  type DeadGroup,
  type DeadPage,
  type InsertResult,
  type NewTask,
  type PurgeChange,
  type QueuePut,
  type QueuePutResult,
  type RedriveChange,
  type Settlement,
  type SettleResult,
  type TaskStore,
} from '../task-store.js';
import { Arrivals } from './arrivals.js';
import { claimDue, convertOrder } from './claims.js';
import { DeadGroupsReader, DeadPageReader, purge, redrive } from './dead-rows.js';
import { Gathering, type Act } from './gathering.js';
import { insertTask } from './inserts.js';
import { deleteQueue, putQueue, setPaused, type QueueAct } from './queue-acts.js';
import { readCounters, readPlainQueue, readQueue, toQueue } from './queue-rows.js';
import * as reading from './reading.js';
import { RecentTasks } from './recent-tasks.js';
import { extendLease, settle } from './settlements.js';
import { Step } from './step.js';
import {
  clearWreck,
  deleteFinished,
  deleteTombstones,
  endedLeases,
  expireTasks,
} from './upkeep.js';

const wreckTasks = 500;
/** So many tasks of different callers may share a step. */
const gatheredTasks = 500;

interface Insert {
  task: NewTask;
  now: number;
}

/** The port on the database engine in this process. Made by `openEmbeddedStore`. */
export class EmbeddedStore implements TaskStore {
  readonly capabilities = { claimsFollowSettlements: true };
  readonly #listeners = new Set<(queue: string) => void>();
  readonly #due = new reading.DueTimes();
  readonly #recent = new RecentTasks();
  /** Queues that were read since they last changed. Nobody else writes here, so they are right. */
  readonly #known = new Map<string, Queue>();
  readonly #gathered: Gathering<Insert | Settlement, InsertResult | SettleResult>;
  readonly #arrivals = new Arrivals();

  constructor(
    private readonly database: Database,
    private readonly random: Random,
  ) {
    const act: Act = (run) => this.#act(run);
    const run = (step: Step, item: Insert | Settlement) =>
      'verdict' in item ? settle(step, item) : insertTask(step, item.task, item.now);
    this.#gathered = new Gathering(
      act,
      gatheredTasks,
      (step, list) => list.map((item) => run(step, item)),
      (queue) => this.#hint(queue),
    );
  }

  async listQueues(): Promise<Queue[]> {
    return this.#read((rows) => reading.queues(rows).map(toQueue));
  }

  async getQueue(name: string): Promise<Queue | undefined> {
    const known = this.#known.get(name);
    if (known) return known;
    const found = this.#read((rows) => readPlainQueue(rows, name));
    if (found) this.#known.set(name, found);
    return found;
  }

  async putQueue(put: QueuePut): Promise<QueuePutResult> {
    const incarnation = this.random.ulid(put.now);
    const result = await this.#change(put.queue, (step) => putQueue(step, put, incarnation));
    if (result.kind === 'written') {
      this.#due.forgetQueues();
      this.#tell(put.queue);
    }
    return result;
  }

  async setPaused(change: QueueAct & { paused: boolean }): Promise<boolean> {
    const isThere = await this.#change(change.queue, (step) => setPaused(step, change));
    if (isThere) this.#tell(change.queue);
    return isThere;
  }

  async deleteQueue(change: QueueAct): Promise<'deleted' | 'not_empty' | 'not_found'> {
    const result = await this.#change(change.queue, (step) => deleteQueue(step, change));
    if (typeof result !== 'number') return result;
    this.#due.forgetQueues();
    await this.clearWreck(result);
    return 'deleted';
  }

  async counts(name: string): Promise<QueueCounts> {
    return this.#read((rows) => {
      const queue = readQueue(rows, name);
      if (!queue) return { pending: 0, inFlight: 0, dead: 0, oldestPendingAt: null };
      const { pending, inFlight, dead } = readCounters(rows, queue.number);
      return {
        pending,
        inFlight,
        dead,
        oldestPendingAt: reading.oldestPendingAt(rows, queue.number),
      };
    });
  }

  async insertTasks(tasks: readonly NewTask[], now: number): Promise<InsertResult[]> {
    const queues = new Set<string>();
    for (const task of tasks) queues.add(task.queue);
    const inserts = tasks.map((task) => ({ task, now }));
    this.#arrivals.begin(queues);
    try {
      // Told before it is on disk: whoever claims now does so in the step of the insert, behind it,
      // and shares its commit. Neither hears of it before that is safe.
      return (await this.#gathered.add(inserts, queues)) as InsertResult[];
    } finally {
      this.#arrivals.end(queues);
      for (const queue of queues) this.#due.forget(queue);
    }
  }

  async getTask(id: string): Promise<WholeTask | Tombstone | undefined> {
    return this.#read((rows) => reading.task(rows, id));
  }

  async claimDue(ask: ClaimAsk): Promise<WholeTask[]> {
    // A look costs far less than a commit of nothing.
    if (!this.#mayBeDue(ask)) return [];
    const claim = (step: Step) => claimDue(step, ask);
    const convert = (step: Step) => convertOrder(step, ask.queue, ask.fifoGroups);
    let claimed = await this.#gathered.join(claim);
    while (!claimed) {
      while (!(await this.#act(convert))) continue;
      claimed = await this.#act(claim);
    }
    // Who got all that was asked for asks again, and need not look first.
    if (claimed.length === ask.limit) this.#due.suppose(ask.queue);
    else this.#due.forget(ask.queue);
    return claimed;
  }

  async settle(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    // As with an insert: who claims now does so behind this, and the places that it frees are free.
    const hinted = this.#recent.queuesOf(settlements);
    const results = (await this.#gathered.add(settlements, hinted)) as SettleResult[];
    const queues = new Set<string>();
    for (const result of results) {
      if (result.kind !== 'settled') continue;
      const { queue, status } = result.task;
      if (status === 'PENDING' || !hinted.has(queue)) queues.add(queue);
    }
    for (const queue of queues) this.#tell(queue);
    return results;
  }

  async extendLease(
    change: Parameters<TaskStore['extendLease']>[0],
  ): Promise<Task | 'lease_lost' | 'not_found'> {
    return this.#act((step) => extendLease(step, change));
  }

  async endedLeases(ask: { now: number; limit: number }): Promise<WholeTask[]> {
    return this.#read((rows) => endedLeases(rows, ask));
  }

  async expireTasks(ask: { now: number; limit: number }): Promise<Task[]> {
    if (!this.#read((rows) => reading.hasExpired(rows, ask.now))) return [];
    const expired = await this.#act((step) => expireTasks(step, ask));
    for (const queue of new Set(expired.map((task) => task.queue))) this.#tell(queue);
    return expired;
  }

  async nextEventAt(): Promise<{
    dueByQueue: ReadonlyMap<string, number>;
    upkeepAt: number | undefined;
  }> {
    return this.#read((rows) => ({
      dueByQueue: this.#due.read(rows),
      upkeepAt: reading.upkeepAt(rows),
    }));
  }

  async groupIsBusy(ask: { queue: string; groupKey: string; id: string }): Promise<boolean> {
    return this.#read((rows) => reading.groupIsBusy(rows, ask));
  }

  onWork(listener: (queue: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async deadTasks(ask: DeadAsk): Promise<DeadPage> {
    const queue = this.#read((rows) => readQueue(rows, ask.queue));
    if (!queue) return { tasks: [], next: undefined };
    const reader = new DeadPageReader(queue.number, ask);
    await this.#readSlices(reader);
    return reader.page;
  }

  async deadGroups(ask: { queue: string; limit: number }): Promise<DeadGroup[]> {
    const queue = this.#read((rows) => readQueue(rows, ask.queue));
    if (!queue) return [];
    const reader = new DeadGroupsReader(queue.number);
    await this.#readSlices(reader);
    return reader.groups.top(ask.limit);
  }

  async redrive(change: RedriveChange): Promise<string[]> {
    const changed = await this.#act((step) =>
      step.queue(change.queue) ? redrive(step, change) : [],
    );
    if (changed.length > 0) this.#tell(change.queue);
    return changed;
  }

  async purge(change: PurgeChange): Promise<string[]> {
    return this.#act((step) => (step.queue(change.queue) ? purge(step, change) : []));
  }

  async deleteFinished(ask: Parameters<TaskStore['deleteFinished']>[0]): Promise<number> {
    if (!this.#read((rows) => reading.hasFinished(rows, ask))) return 0;
    return this.#act((step) => deleteFinished(step, ask));
  }

  async deleteTombstones(ask: { now: number; limit: number }): Promise<number> {
    if (!this.#read((rows) => reading.hasOldTombstones(rows, ask.now))) return 0;
    return this.#act((step) => deleteTombstones(step, ask));
  }

  async auditPage(ask: AuditAsk): Promise<AuditRecord[]> {
    const reader = new reading.AuditReader(ask);
    await this.#readSlices(reader);
    return reader.records;
  }

  /** Goes through the writer and the disk, because that is what may fail. */
  async probe(): Promise<void> {
    await this.#act(() => undefined);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    await this.database.close();
  }

  /** What the tasks of deleted queues left behind, also by a process that was killed at it. */
  async clearWrecks(): Promise<void> {
    for (const queue of this.#read(reading.wrecks)) await this.clearWreck(queue);
  }

  private async clearWreck(queue: number): Promise<void> {
    while (!(await this.#act((step) => clearWreck(step, queue, wreckTasks)))) continue;
  }

  /** Runs one act as one commit. Resolves when it is on disk. */
  async #act<Result>(run: (step: Step) => Result): Promise<Result> {
    const bug: { thrown?: unknown } = {};
    try {
      return await this.database.transact((target) => {
        try {
          const step = new Step(target.rows, this.#recent);
          const result = run(step);
          step.finish();
          return result;
        } catch (error) {
          bug.thrown = error;
          throw error;
        }
      });
    } catch (error) {
      // What was refused may be in the file all the same.
      this.#due.forgetAll();
      throw error === bug.thrown ? unavailableIfRefused(error) : unavailable(error);
    }
  }

  /** An act on the queue itself. */
  async #change<Result>(queue: string, run: (step: Step) => Result): Promise<Result> {
    try {
      return await this.#act(run);
    } finally {
      this.#known.delete(queue);
    }
  }

  #read<Result>(read: (rows: RowReader) => Result): Result {
    try {
      return this.database.readRows(read);
    } catch (error) {
      throw unavailableIfRefused(error);
    }
  }

  async #readSlices(reader: { readSlice(rows: RowReader): boolean }): Promise<void> {
    while (!this.#read((rows) => reader.readSlice(rows))) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #mayBeDue({ queue, now }: ClaimAsk): boolean {
    if (this.#arrivals.at(queue)) return true;
    if (this.#due.isSupposed(queue)) return true;
    const dueAt = this.#read((rows) => this.#due.of(queue, rows));
    return dueAt !== undefined && dueAt <= now;
  }

  #tell(queue: string): void {
    this.#due.forget(queue);
    this.#hint(queue);
  }

  #hint(queue: string): void {
    for (const listener of this.#listeners) listener(queue);
  }
}

function unavailable(error: unknown): StorageUnavailable {
  return new StorageUnavailable(`The store does not answer: ${messageOf(error)}`, { cause: error });
}

/** The engine refuses when it cannot; everything else is a bug and stays one. */
function unavailableIfRefused(error: unknown): unknown {
  return error instanceof Refusal ? unavailable(error) : error;
}
