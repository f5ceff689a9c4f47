import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import type { AuditRecord } from '../../core/audit.js';
import type { Queue, QueueCounts } from '../../core/queue.js';
import type { LastError, Task, Tombstone, WholeTask } from '../../core/task.js';
import { expireRow, type TaskRow } from '../task-row.js';
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
  type StoreCapabilities,
  type TaskStore,
} from '../task-store.js';
import { readAudit } from './audit.js';
import { Batcher } from './batcher.js';
import { Burials } from './burials.js';
import { ClaimedTasks } from './claimed-tasks.js';
import { Claims } from './claims.js';
import type { ClockShift } from './clock-shift.js';
import type { Connections } from './connections.js';
import { purge, readDeadGroups, readDeadPage, redrive } from './dead-rows.js';
import { Expiries } from './expiries.js';
import { Floors } from './floors.js';
import type { Hints } from './hints.js';
import { insertAll, type Insert } from './inserts.js';
import { Leases } from './leases.js';
import { Ledger } from './ledger.js';
import { Looks } from './looks.js';
import { readNextDue } from './next-due.js';
import { OldestPending } from './oldest-pending.js';
import { Pace } from './pace.js';
import * as acts from './queue-acts.js';
import { toQueue, type QueueAct, type QueueColumns } from './queue-acts.js';
import * as rows from './rows.js';
import { settleAll } from './settlements.js';
import { Shares } from './shares.js';
import type { SkippingStatement, Statement } from './statement.js';
import { openEmbeddedSource, openEmbeddedTarget } from './transfer/embedded-end.js';
import { PostgresEnd } from './transfer/postgres-end.js';
import { transfer, type TransferTally, type TransferWatch } from './transfer/transfer.js';
import { counts } from './statements/counts.sql.js';
import { expireTasks } from './statements/expire-tasks.sql.js';
import { extendLease } from './statements/extend-lease.sql.js';
import { findTasks, findWholeTasks } from './statements/find-tasks.sql.js';
import { groupIsBusy } from './statements/group-is-busy.sql.js';
import { leaveClaimants, readTime } from './statements/instances.sql.js';
import { getQueue, listQueues } from './statements/queues.sql.js';

export interface PostgresStoreParts {
  connections: Connections;
  hints: (heard: (queue: string) => void) => Hints;
  /** Names this store among those on the database. */
  instance: string;
  /** The engine knows SKIP LOCKED. */
  canSkip: boolean;
  shift: ClockShift;
  cursorKey: Uint8Array;
  clock: Clock;
  random: Random;
  log: Log;
}

export interface TransferAsk extends TransferWatch {
  /** `in`: from the directory into the database. */
  direction: 'in' | 'out';
  dataDirectory: string;
}

/** So many tasks of different callers may share a commit. */
const gathered = { mostItems: 500, mostAtOnce: 1 };
const mostPayloadBytes = 4 * 2 ** 20;
const clockEveryMs = 10_000;

/** The port on a PostgreSQL that other servers may share. Made by `openPostgresStore`. */
export class PostgresStore implements TaskStore {
  readonly capabilities: StoreCapabilities & { readonly cursorKey: Uint8Array };
  readonly #listeners = new Set<(queue: string) => void>();
  readonly #floors = new Floors();
  readonly #claimed = new ClaimedTasks();
  readonly #hints: Hints;
  readonly #claims: Claims;
  readonly #shares: Shares;
  readonly #ledger: Ledger;
  readonly #leases: Leases;
  readonly #expiries: Expiries;
  readonly #looks: Looks;
  readonly #oldestPending: OldestPending;
  readonly #burials: Burials;
  readonly #pace: Pace;
  readonly #inserts: Batcher<Insert, InsertResult>;
  readonly #settlements: Batcher<Settlement, SettleResult>;
  readonly #connections: Connections;
  #clockTimer: ReturnType<Clock['after']> | undefined;
  #closed: Promise<void> | undefined;

  constructor(private readonly parts: PostgresStoreParts) {
    const { connections, clock, instance, log } = parts;
    this.#connections = connections;
    // The key belongs to the database, so that every server accepts the cursors of the others.
    const { cursorKey } = parts;
    this.capabilities = { batchSizes: { claim: 500, deletion: 200 }, cursorKey };
    const monotonic = () => clock.monotonic();
    const floors = this.#floors;
    this.#ledger = new Ledger(connections, monotonic, log);
    this.#looks = new Looks(connections, floors, monotonic, log);
    this.#claims = new Claims({
      connections,
      floors,
      looks: this.#looks,
      ledger: this.#ledger,
      random: parts.random,
    });
    this.#shares = new Shares(connections, instance, monotonic);
    this.#leases = new Leases(connections, monotonic);
    this.#expiries = new Expiries(connections, monotonic, this.#skip(expireTasks));
    this.#burials = new Burials(connections, monotonic, (statement) => this.#skip(statement));
    this.#oldestPending = new OldestPending(connections, floors, monotonic);
    this.#pace = new Pace(clock);
    this.#hints = parts.hints((queue) => this.#hear(queue));
    this.#inserts = new Batcher({
      ...gathered,
      run: (list) => insertAll(connections, this.#ledger, list),
      mostBytes: mostPayloadBytes,
      bytesOf: ({ task }) => task.payload.length,
    });
    this.#settlements = new Batcher({
      ...gathered,
      run: (list) => settleAll(connections, this.#claimed, list),
    });
  }

  /** Reads the clock, listens to other servers, and buries what a killed one left. */
  async start(): Promise<void> {
    await this.#readClock();
    await this.#hints.start();
    await this.#looks.start();
    await this.#burials.clearWrecks();
    this.#watchClock();
  }

  async listQueues(): Promise<Queue[]> {
    const found = await this.#connections.ask<QueueColumns>(listQueues);
    return found.map(toQueue);
  }

  async getQueue(name: string): Promise<Queue | undefined> {
    const [found] = await this.#connections.ask<QueueColumns>(getQueue, [name]);
    return found && toQueue(found);
  }

  async putQueue(put: QueuePut): Promise<QueuePutResult> {
    const incarnation = this.parts.random.ulid(put.now);
    const result = await acts.putQueue(this.#connections, put, incarnation);
    if (result.kind === 'written') this.#tell([put.queue]);
    return result;
  }

  async setPaused(change: QueueAct & { paused: boolean }): Promise<boolean> {
    const isThere = await acts.setPaused(this.#connections, change);
    if (isThere) this.#tell([change.queue]);
    return isThere;
  }

  async deleteQueue(change: QueueAct): Promise<'deleted' | 'not_empty' | 'not_found'> {
    const result = await acts.deleteQueue(this.#connections, change);
    if (typeof result !== 'number') return result;
    this.#floors.forget(change.queue);
    this.#looks.forget(change.queue);
    await this.#burials.clearWreck(result, change.now);
    return 'deleted';
  }

  async counts(queue: string): Promise<QueueCounts> {
    const [[row], oldestPendingAt] = await Promise.all([
      this.#connections.ask<{ pending: number; in_flight: number; dead: number }>(counts, [
        queue,
        this.#ledger.firstEntry(queue),
      ]),
      this.#oldestPending.of(queue),
    ]);
    const { pending, in_flight: inFlight, dead } = row!;
    return { pending, inFlight, dead, oldestPendingAt };
  }

  async insertTasks(tasks: readonly NewTask[], now: number): Promise<InsertResult[]> {
    const results = await this.#inserts.add(tasks.map((task) => ({ task, now })));
    const queues = new Set<string>();
    results.forEach((result) => {
      if (result.kind !== 'stored') return;
      this.#awaits(result.task);
      queues.add(result.task.queue);
    });
    this.#ledger.added(queues);
    this.#tell(queues);
    return results;
  }

  async getTask(id: string): Promise<WholeTask | Tombstone | undefined> {
    const [found] = await this.#connections.ask<rows.FoundColumns & rows.WholeColumns>(
      findWholeTasks,
      [[id]],
    );
    if (!found) return undefined;
    return found.status === null ? rows.toTombstone(found) : rows.toWholeTask(found);
  }

  async claimDue(ask: ClaimAsk): Promise<WholeTask[]> {
    await this.#pace.wait(ask);
    const limit = await this.#shares.room(ask);
    const tasks = await this.#claims.claim({ ...ask, limit });
    this.#pace.claimed(ask, tasks.length);
    if (tasks.length === 0) return tasks;
    this.#leases.taken(ask.leaseExpiresAt);
    for (const task of tasks) {
      this.#claimed.add(task);
      this.#shares.taken(ask.queue, task.lease!.token, task.lease!.expiresAt);
    }
    this.#ledger.added([ask.queue]);
    return tasks;
  }

  async settle(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    const results = await this.#settlements.add(settlements);
    const queues = new Set<string>();
    results.forEach((result, i) => {
      if (!result.task) return;
      this.#shares.ended(result.task.queue, settlements[i]!.token);
      if (result.kind !== 'settled') return;
      this.#awaits(result.task);
      queues.add(result.task.queue);
    });
    this.#ledger.added(queues);
    this.#tell(queues);
    return results;
  }

  async extendLease(
    change: Parameters<TaskStore['extendLease']>[0],
  ): Promise<Task | 'lease_lost' | 'not_found'> {
    const { id, token, expiresAt, isAsync, now } = change;
    const values = [id, rows.withoutZeros(token), rows.wholeMs(expiresAt), isAsync, now];
    const [moved] = await this.#connections.ask<rows.TaskColumns>(extendLease, values);
    if (moved) {
      this.#shares.taken(moved.queue, token, expiresAt);
      this.#leases.taken(expiresAt);
      return rows.toTask(moved);
    }
    const [found] = await this.#connections.ask<rows.FoundColumns>(findTasks, [[id]]);
    return found && found.status !== null ? 'lease_lost' : 'not_found';
  }

  endedLeases({ now, limit }: { now: number; limit: number }): Promise<WholeTask[]> {
    return this.#leases.ended({ now, limit });
  }

  async expireTasks({ now, limit }: { now: number; limit: number }): Promise<Task[]> {
    const found = await this.#expiries.expire({ now, limit, error: expiredAt(now) });
    const queues = new Set(found.map(({ queue }) => queue));
    this.#ledger.added(queues);
    this.#tell(queues);
    return found.map(rows.toTask);
  }

  async nextEventAt(): Promise<{
    dueByQueue: ReadonlyMap<string, number>;
    upkeepAt: number | undefined;
  }> {
    const now = this.parts.clock.now() + this.parts.shift.ms;
    const [dueByQueue, expiry, leaseEnd] = await Promise.all([
      readNextDue(this.#connections, this.#floors),
      this.#expiries.next(now),
      this.#leases.nextEnd(),
    ]);
    const upkeepAt = Math.min(expiry ?? Infinity, leaseEnd ?? Infinity);
    return { dueByQueue, upkeepAt: upkeepAt === Infinity ? undefined : upkeepAt };
  }

  async groupIsBusy(ask: { queue: string; groupKey: string; id: string }): Promise<boolean> {
    const values = [ask.queue, ask.groupKey, ask.id];
    const [row] = await this.#connections.ask<{ busy: boolean }>(groupIsBusy, values);
    return row!.busy;
  }

  onWork(listener: (queue: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  deadTasks(ask: DeadAsk): Promise<DeadPage> {
    return readDeadPage(this.#connections, ask);
  }

  deadGroups(ask: { queue: string; limit: number }): Promise<DeadGroup[]> {
    return readDeadGroups(this.#connections, ask);
  }

  async redrive(change: RedriveChange): Promise<string[]> {
    const changed = await redrive(this.#connections, change);
    if (changed.length === 0) return [];
    const earliest = changed.reduce((least, { dueAt }) => Math.min(least, dueAt), Infinity);
    this.#floors.lowerAll(change.queue, earliest);
    this.#ledger.added([change.queue]);
    this.#tell([change.queue]);
    return changed.map(({ id }) => id);
  }

  async purge(change: PurgeChange): Promise<string[]> {
    const gone = await purge(this.#connections, change);
    this.#burials.buried(change.now);
    this.#ledger.added([change.queue]);
    return gone;
  }

  async deleteFinished(ask: Parameters<TaskStore['deleteFinished']>[0]): Promise<number> {
    const gone = await this.#burials.deleteFinished(ask);
    if (gone > 0 && ask.status === 'DEAD') this.#ledger.added([ask.queue]);
    return gone;
  }

  deleteTombstones(ask: { now: number; limit: number }): Promise<number> {
    return this.#burials.deleteTombstones(ask);
  }

  auditPage(ask: AuditAsk): Promise<AuditRecord[]> {
    return readAudit(this.#connections, ask);
  }

  async probe(): Promise<void> {
    await this.#readClock();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Moves everything between this database and the embedded store of a data directory. */
  async transfer({ direction, dataDirectory, ...watch }: TransferAsk): Promise<TransferTally> {
    const { clock, random, log } = this.parts;
    const here = new PostgresEnd(this.#connections, clock.now() + this.parts.shift.ms);
    const world = { clock, random, log };
    if (direction === 'in') {
      const source = await openEmbeddedSource(dataDirectory, world);
      try {
        return await transfer(source, here, 'embedded', watch);
      } finally {
        await source.close();
      }
    }
    const target = await openEmbeddedTarget(dataDirectory, world);
    try {
      return await transfer(here, target, 'postgres', watch);
    } finally {
      await target.close();
    }
  }

  async #close(): Promise<void> {
    this.#listeners.clear();
    this.#clockTimer?.cancel();
    await this.#hints.close();
    await this.#ledger.close();
    // The others need not wait for it to be forgotten; when the database is away they will.
    await this.#connections.ask(leaveClaimants, [this.parts.instance]).catch((error: unknown) => {
      this.parts.log.debug({ err: error }, 'the other servers were not told of the end');
    });
    await this.#connections.close();
  }

  #skip({ skipping, waiting }: SkippingStatement): Statement {
    return this.parts.canSkip ? skipping : waiting;
  }

  /** What waits must not lie below where it is looked for. */
  #awaits({ queue, priority, groupKey, dueAt, updatedAt, expiresAt }: Task): void {
    if (dueAt === null) return;
    if (groupKey === null) this.#floors.lower(queue, priority, dueAt);
    if (dueAt > updatedAt) this.#floors.awaits(queue, dueAt);
    if (expiresAt !== null) this.#expiries.awaits(expiresAt);
  }

  #tell(queues: Iterable<string>): void {
    this.#hints.tell(queues);
    for (const queue of queues) this.#hear(queue);
  }

  #hear(queue: string): void {
    for (const listener of this.#listeners) listener(queue);
  }

  async #readClock(): Promise<void> {
    await this.parts.shift.measure(async () => {
      const [row] = await this.#connections.ask<{ now: number; read_only: string }>(readTime);
      // A standby, or one that was told to take no more: it answers, and stores nothing.
      if (row!.read_only === 'on') throw new StorageUnavailable('PostgreSQL is read only');
      return row!.now;
    });
  }

  #watchClock(): void {
    this.#clockTimer = this.parts.clock.after(clockEveryMs, () => {
      if (this.#closed) return;
      // Away: the machine's own steady clock goes on from what was read last.
      const again = () => this.#watchClock();
      this.#readClock().then(again, again);
    });
  }
}

function expiredAt(now: number): LastError {
  const row = { lastError: null } as unknown as TaskRow;
  expireRow(row, now);
  return row.lastError!;
}
