import type { Clock } from '@millrace/kit/clock';
import type { Simulation } from '@millrace/kit/simulation';
import type { QueueConfig } from '../src/core/queue.js';
import { isUncounted, type TaskStatus } from '../src/core/task.js';
import type { CancelTaskChange, TaskChangeResult } from '../src/storage/port/task-changes.js';
import type {
  ClaimRequest,
  InsertResult,
  NewTask,
  DeadChange,
  Settlement,
  SettleResult,
  TaskStore,
} from '../src/storage/port/task-store.js';
import type { Calendar } from './calendar.js';
import { JobWitness, type Death } from './job-witness.js';
import { KeyWitness } from './key-witness.js';
import { ScheduleWitness, type RowWritten } from './schedule-witness.js';

/** A task as it must be, by what the store has answered so far. */
export interface Known {
  id: string;
  queue: string;
  groupKey: string | null;
  status: TaskStatus;
  dueAt: number;
  expiresAt: number | null;
  /** It was claimed since the submit or the last redrive. */
  isStarted: boolean;
  token: string;
  leaseEnd: number;
  /** Its handler asked for more time. */
  isExtended: boolean;
  isAsync: boolean;
  redrives: number;
  deaths: number;
  deadAt: number;
  /** When it ended, in the time of the world. */
  endedAt: number;
}

type WatchedCall = (...values: unknown[]) => Promise<unknown>;

/**
 * Sits between the servers and the store, and fails the run at once when a server violates an
 * invariant. It has its own model of every task.
 */
export class Witness {
  readonly tasks = new Map<string, Known>();
  /** When tasks of a queue started, in the time of the world. */
  readonly starts = new Map<string, number[]>();
  readonly #configs = new Map<string, { config: QueueConfig; until: number }[]>();
  claims = 0;
  settles = 0;
  lostLeases = 0;
  cancelledPending = 0;
  cancelledInFlight = 0;
  readonly keys = new KeyWitness(
    (id) => this.tasks.get(id)?.status,
    (holds, message, about) => this.#demand(holds, message, about),
    () => Promise.allSettled(this.#unrecorded),
  );

  readonly schedules: ScheduleWitness;
  readonly jobs: JobWitness;
  /** Calls that may have made work which is not recorded yet: a claim may find it before. */
  readonly #unrecorded = new Set<Promise<unknown>>();

  constructor(
    private readonly world: Simulation,
    private readonly disk: TaskStore,
    calendar: Calendar,
    /** A store that counts by the wall clock keeps no rate while that clock is being set. */
    readonly clocksJump: boolean,
  ) {
    const demand = this.#demand.bind(this);
    const livenessOf = (id: string) => this.#livenessOf(id);
    this.schedules = new ScheduleWitness({ calendar, livenessOf, demand });
    const deadIn = (queue: string) => this.#deadIn(queue);
    const isStillDead = (death: Death) => this.#isStillDead(death);
    this.jobs = new JobWitness({ deadIn, isStillDead, clocksJump, demand });
  }

  /** The disk as one server, or the operator, sees it. */
  view(clock: Clock, name: string): TaskStore {
    const { disk } = this;
    const startedAt = clock.monotonic();
    const watched: Partial<TaskStore> = {
      insertTasks: async (tasks, now) => {
        const results = await disk.insertTasks(tasks, now);
        results.forEach((result, i) => {
          this.keys.inserted(tasks[i]!, result, now);
          if (result.kind === 'stored') this.#stored(tasks[i]!);
        });
        return results;
      },
      deleteTombstones: (request) => {
        this.keys.removed(request.now);
        return disk.deleteTombstones(request);
      },
      putQueue: async (put) => {
        const result = await disk.putQueue(put);
        this.#configured(put.queue, put.config);
        return result;
      },
      claimDue: async (request) => {
        const earlier = [...this.#unrecorded];
        const calledAt = this.world.timeline.elapsedMs;
        const tasks = await disk.claimDue(request);
        if (tasks.length > 0) this.#checkPolicy(request, calledAt);
        await Promise.allSettled(earlier);
        for (const task of tasks) this.#claimed(task.id, task.lease!.token, request);
        this.#checkLimits(request, tasks.length);
        if (tasks.length > 0) this.#note('claim', name, request.queue, tasks.map(idOf));
        return tasks;
      },
      settle: async (settlements) => {
        const now = clock.now();
        const results = await disk.settle(settlements);
        results.forEach((result, i) => this.#settled(settlements[i]!, result, now));
        const kinds = results.map((result, i) => `${settlements[i]!.verdict.kind} ${result.kind}`);
        this.world.note('settle', { kinds, ids: settlements.map(idOf) }, name);
        return results;
      },
      extendLease: async (change) => {
        const result = await disk.extendLease(change);
        const task = this.tasks.get(change.id);
        if (typeof result === 'object' && task) {
          // Work that is handed over gets the time that its queue has for it, which may be less.
          const isHandedOver = change.isAsync && !task.isAsync;
          const mayShorten = isHandedOver && !task.isExtended;
          const leaseEnd = result.lease!.expiresAt;
          const isShortened = leaseEnd < task.leaseEnd;
          this.#demand(mayShorten || !isShortened, 'a lease was shortened', change.id);
          task.isExtended ||= !isHandedOver;
          task.leaseEnd = leaseEnd;
          task.isAsync = change.isAsync;
        }
        return result;
      },
      expireTasks: async (request) => {
        const expired = await disk.expireTasks(request);
        for (const { id } of expired) this.#expired(id, request.now);
        return expired;
      },
      actOnDead: async (change) => {
        const result = await disk.actOnDead(change);
        if (result.kind !== 'done') return result;
        const { action, queue, row } = change;
        if (row) this.jobs.stepped(row, result.ids);
        if (action === 'redrive') for (const id of result.ids) this.#redriven(id, change);
        this.#note(row ? `job ${action}` : action, name, queue, result.ids);
        return result;
      },
      writeRows: async (batch) => {
        const result = await disk.writeRows(batch);
        if (result.kind !== 'written') return result;
        const by = { name, uptimeMs: clock.monotonic() - startedAt };
        const { tasks, now, puts = [], removals = [] } = batch;
        for (const put of puts) {
          if (put.table !== 'schedule' && put.table !== 'job') continue;
          await this.#rowWritten({ ...put, tasks, now }, result.inserted, by);
        }
        for (const { table, queue, from } of removals) {
          if (table === 'schedule') this.schedules.deleted({ queue, key: from });
        }
        return result;
      },
      cancelTask: async (change) => {
        const result = await disk.cancelTask(change);
        this.#cancelAnswered(change, result);
        this.world.note('cancel', { id: change.id, kind: result.kind }, name);
        return result;
      },
      cancelPending: async (change) => {
        const ids = await disk.cancelPending(change);
        for (const id of ids) this.#cancelled(id, ['PENDING'], change.now);
        this.#note('cancel_pending', name, change.queue, ids);
        return ids;
      },
    };
    return new Proxy(disk, {
      get: (target, property) => {
        const own = (watched as Record<string | symbol, unknown>)[property];
        if (own) return property === 'claimDue' ? own : this.#recording(own as WatchedCall);
        const member: unknown = Reflect.get(target, property, target);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  }

  #recording(call: WatchedCall): WatchedCall {
    return (...values) => {
      const result = call(...values);
      this.#unrecorded.add(result);
      const done = () => this.#unrecorded.delete(result);
      result.then(done, done);
      return result;
    };
  }

  #configured(queue: string, config: QueueConfig): void {
    const at = this.world.timeline.elapsedMs;
    const recent = (this.#configs.get(queue) ?? []).slice(-1);
    for (const before of recent) before.until = at;
    this.#configs.set(queue, [...recent, { config, until: Infinity }]);
  }

  /** A claim uses the current config, or one that was replaced during the claim. */
  #checkPolicy(request: ClaimRequest, calledAt: number): void {
    const since = calledAt - 100;
    const isOf = ({ callback, lease, limits, ordering }: QueueConfig) =>
      request.leaseExpiresAt - request.now === callback.timeout_ms + lease.grace_ms &&
      request.maxInFlight === limits.max_in_flight &&
      request.dispatchPerSecond === limits.dispatch_per_second &&
      request.fifoGroups === (ordering.mode === 'group');
    const configs = this.#configs.get(request.queue) ?? [];
    const fits = configs.some(({ config, until }) => until >= since && isOf(config));
    this.#demand(fits, 'a claim was made by an old config', request.queue);
  }

  #stored(task: NewTask): void {
    const { id, queue, groupKey, dueAt, expiresAt } = task;
    this.#demand(!this.tasks.has(id), 'one id was stored twice', id);
    const rest = { status: 'PENDING' as const, isStarted: false, token: '', leaseEnd: 0 };
    const lease = { isExtended: false, isAsync: false };
    const end = { redrives: 0, deaths: 0, deadAt: 0, endedAt: 0 };
    this.tasks.set(id, { id, queue, groupKey, dueAt, expiresAt, ...lease, ...rest, ...end });
  }

  #claimed(id: string, token: string, request: ClaimRequest): void {
    const task = this.#known(id);
    this.#demand(task.status === 'PENDING', `a ${task.status} task was claimed`, id);
    this.#demand(task.dueAt <= request.now, 'a task was claimed before it was due', id);
    this.#demand((task.expiresAt ?? Infinity) > request.now, 'an expired task was claimed', id);
    if (request.fifoGroups && task.groupKey !== null) this.#checkGroup(task, request.now);
    task.status = 'IN_FLIGHT';
    task.isStarted = true;
    task.token = token;
    task.leaseEnd = request.leaseExpiresAt;
    task.isExtended = false;
    task.isAsync = false;
    this.claims++;
  }

  #checkGroup(task: Known, now: number): void {
    for (const other of this.tasks.values()) {
      if (other === task || other.queue !== task.queue || other.groupKey !== task.groupKey)
        continue;
      this.#demand(other.status !== 'IN_FLIGHT', 'two of one FIFO group are in flight', task.id);
      if (other.status !== 'PENDING') continue;
      this.#demand(!other.isStarted, 'a task overtook one that waits to be retried', task.id);
      const isBefore =
        other.dueAt < task.dueAt || (other.dueAt === task.dueAt && other.id < task.id);
      const mustWait = !task.isStarted && other.dueAt <= now && isBefore;
      this.#demand(!mustWait, `a task overtook ${other.id} of its FIFO group`, task.id);
    }
  }

  #checkLimits(request: ClaimRequest, claimed: number): void {
    if (claimed === 0) return;
    let inFlight = 0;
    for (const task of this.tasks.values()) {
      if (task.queue === request.queue && task.status === 'IN_FLIGHT') inFlight++;
    }
    this.#demand(inFlight <= request.maxInFlight, `${inFlight} tasks are in flight`, request.queue);
    // Servers and stores count in whole milliseconds.
    const at = Math.floor(this.world.timeline.elapsedMs);
    const starts = (this.starts.get(request.queue) ?? []).filter((start) => start > at - 1_000);
    for (let i = 0; i < claimed; i++) starts.push(at);
    this.starts.set(request.queue, starts);
    const isLimited = request.dispatchPerSecond > 0 && !this.clocksJump;
    const most = Math.max(1, request.dispatchPerSecond);
    this.#demand(
      !isLimited || starts.length <= most,
      'too many tasks started in a second',
      request.queue,
    );
  }

  #settled(settlement: Settlement, result: SettleResult, now: number): void {
    const { id, token, verdict, attempt } = settlement;
    const task = this.tasks.get(id);
    if (result.kind !== 'settled') {
      // An expiry that was found before the lease was extended ends nothing.
      const isExtended = (task?.leaseEnd ?? 0) > (settlement.expiredBy ?? Infinity);
      this.#demand(
        task?.status !== 'IN_FLIGHT' || task.token !== token || isExtended,
        'the holder of a lease got lease_lost',
        id,
      );
      this.lostLeases++;
      return;
    }
    const known = this.#known(id);
    this.#demand(known.status === 'IN_FLIGHT', `a ${known.status} task was settled`, id);
    this.#demand(known.token === token, 'a task was settled with a lost lease', id);
    const outcome = attempt.outcome;
    const isExpired = outcome === 'LEASE_EXPIRED';
    // The clock may have been set back since the lease was found to be over.
    const isOver = known.leaseEnd <= (isExpired ? settlement.now : now);
    this.#demand(isOver === isExpired, `settled at ${now} as ${outcome}`, id);
    const isHandedBack = verdict.kind === 'handed_back';
    this.#demand(isHandedBack === isUncounted(outcome), `${verdict.kind}: ${outcome}`, id);
    known.token = '';
    this.settles++;
    if (verdict.kind === 'succeeded') {
      known.status = 'SUCCEEDED';
      known.endedAt = this.world.timeline.elapsedMs;
    } else if (verdict.kind === 'dead') this.#died(known, settlement.now);
    else {
      known.status = 'PENDING';
      known.dueAt = verdict.dueAt;
    }
  }

  #expired(id: string, now: number): void {
    const task = this.#known(id);
    this.#demand(task.status === 'PENDING', `a ${task.status} task expired`, id);
    this.#demand((task.expiresAt ?? Infinity) <= now, 'a task expired before its time', id);
    this.#died(task, now);
  }

  #died(task: Known, now: number): void {
    task.status = 'DEAD';
    task.deaths++;
    task.deadAt = now;
    task.endedAt = this.world.timeline.elapsedMs;
  }

  #cancelAnswered({ id, now }: CancelTaskChange, { kind }: TaskChangeResult): void {
    if (kind === 'not_found') return;
    if (kind === 'changed') return this.#cancelled(id, ['PENDING', 'IN_FLIGHT'], now);
    const { status } = this.#known(id);
    const hasEnded = status === 'SUCCEEDED' || status === 'DEAD';
    this.#demand(hasEnded, `the cancel of a ${status} task was ${kind}`, id);
  }

  #cancelled(id: string, allowed: readonly TaskStatus[], now: number): void {
    const task = this.#known(id);
    this.#demand(allowed.includes(task.status), `a ${task.status} task was cancelled`, id);
    if (task.status === 'IN_FLIGHT') this.cancelledInFlight++;
    else this.cancelledPending++;
    this.#died(task, now);
    task.token = '';
  }

  #redriven(id: string, change: DeadChange): void {
    const task = this.#known(id);
    this.#demand(task.status === 'DEAD', `a ${task.status} task was redriven`, id);
    this.keys.redriven(id, change.now);
    task.status = 'PENDING';
    task.redrives++;
    task.isStarted = false;
    task.expiresAt = null;
    task.dueAt = change.dueAt!(change.ids.indexOf(id));
  }

  async #rowWritten(
    write: RowWritten,
    inserted: readonly InsertResult[],
    { name, uptimeMs }: { name: string; uptimeMs: number },
  ): Promise<void> {
    const { table, queue, key, now, tasks = [] } = write;
    inserted.forEach((result, i) => {
      if (result.kind === 'stored') this.#stored({ ...tasks[i]!, id: result.task.id });
    });
    this.world.note(table, { queue, name: key, now, ids: tasks.map(idOf) }, name);
    if (table === 'job') await this.jobs.written(write);
    else if (name === operatorName) this.schedules.defined(write);
    else this.schedules.advanced(write, inserted, uptimeMs);
  }

  #livenessOf(id: string) {
    const { status, redrives, endedAt } = this.#known(id);
    if (status === 'PENDING' || status === 'IN_FLIGHT') return redrives > 0 ? 'redriven' : 'live';
    return endedAt > this.world.timeline.elapsedMs - 1_000 ? 'just_ended' : 'ended';
  }

  #deadIn(queue: string): Death[] {
    const all = [...this.tasks.values()];
    const dead = all.filter((task) => task.queue === queue && task.status === 'DEAD');
    return dead.map(({ id, deadAt, deaths }) => ({ id, deadAt, deaths }));
  }

  async #isStillDead({ id, deaths }: Death): Promise<boolean> {
    const task = this.#known(id);
    if (task.status !== 'DEAD' || task.deaths !== deaths) return false;
    const stored = await this.disk.getTask(id);
    return stored?.status === 'DEAD' && 'attempts' in stored;
  }

  #known(id: string): Known {
    const task = this.tasks.get(id);
    if (task) return task;
    const error = new Error(`nobody submitted ${id}`);
    this.world.fail(error);
    throw error;
  }

  #demand(holds: boolean, message: string, about: string): void {
    if (!holds) this.world.fail(new Error(`${message} (${about})`));
  }

  #note(kind: string, scope: string, queue: string, ids: readonly string[]): void {
    this.world.note(kind, { queue, ids }, scope);
  }
}

const operatorName = 'operator';
const idOf = ({ id }: { id: string }) => id;
