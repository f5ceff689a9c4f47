import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { startStepMs } from '../../core/pacing.js';
import type { TaskFlow } from '../../core/flow.js';
import type { LastError, WholeTask } from '../../core/task.js';
import { queueChanged, wokenByTime } from '../port/store-parts.js';
import type { ClaimRequest } from '../port/task-store.js';
import { claim, claimWithGroupLimit, lockAndPromote } from './claim.sql.js';
import { LowWaterMarkSweeper } from './low-water-marks.js';
import { textArray } from './batches.js';
import type { Connections } from './connections.js';
import type { Counters } from './counters.js';
import { attemptsOf, optionsOf } from './tasks.js';
import { joinClaimants } from './notifications.js';

export interface ClaimsOptions {
  connections: Connections;
  counters: Counters;
  /** Identifies this server among those on the database. */
  instance: string;
  clock: Clock;
  log: Log;
}

/**
 * Claims due tasks. One claim of a queue runs at a time over all servers: it holds the claim lock
 * of the queue. See docs/explanation/queue-on-postgres.md.
 */
export class Claims {
  readonly share: ServerShare;
  readonly #throttle: ClaimThrottle;
  readonly #sweeper: LowWaterMarkSweeper;
  /** Queues whose last claim took as many tasks as the limits allowed: more may be ready. */
  readonly #limited = new Set<string>();
  /** How many claims of a queue run. */
  readonly #running = new Map<string, number>();

  constructor(private readonly options: ClaimsOptions) {
    const { connections, instance, clock, log } = options;
    this.share = new ServerShare(connections, instance, () => clock.monotonic());
    this.#throttle = new ClaimThrottle(clock);
    this.#sweeper = new LowWaterMarkSweeper(connections, () => clock.monotonic(), log);
  }

  async claim(request: ClaimRequest): Promise<WholeTask[]> {
    if (!request.isImmediate) await this.#throttle.wait(request);
    const { queue } = request;
    this.#running.set(queue, (this.#running.get(queue) ?? 0) + 1);
    try {
      return await this.#claimWithin(request);
    } finally {
      const left = this.#running.get(queue)! - 1;
      if (left > 0) this.#running.set(queue, left);
      else this.#running.delete(queue);
    }
  }

  /**
   * Whether a slot of `max_in_flight` that becomes free may let a task start. Otherwise the last
   * claim found nothing more to take, and only new work matters.
   */
  waitsForSlots(queue: string): boolean {
    return this.#limited.has(queue) || this.#running.has(queue);
  }

  async #claimWithin(request: ClaimRequest): Promise<WholeTask[]> {
    const { queue } = request;
    const limit = await this.share.room(request);
    if (limit < request.limit) this.#limited.add(queue);
    if (limit <= 0) return [];
    this.#sweeper.sweepIfDue(queue);
    const { tasks, isLimited } = await this.#claim(request, limit);
    if (isLimited) this.#limited.add(queue);
    else this.#limited.delete(queue);
    this.#throttle.claimed({ ...request, limit }, tasks.length);
    for (const { lease } of tasks) this.share.taken(queue, lease!.token, lease!.expiresAt);
    return tasks;
  }

  forget(queue: string): void {
    this.#sweeper.forget(queue);
    this.#limited.delete(queue);
  }

  close(): Promise<void> {
    return this.#sweeper.close();
  }

  async #claim(
    request: ClaimRequest,
    limit: number,
  ): Promise<{ tasks: WholeTask[]; isLimited: boolean }> {
    const { connections, counters } = this.options;
    const { queue, expected, now, handlers, excludedHandlers, labels, maxPerGroup = 0 } = request;
    const tokens = Array.from({ length: limit }, () => request.newToken());
    const values = [
      queue,
      limit,
      request.maxInFlight,
      now,
      request.leaseExpiresAt,
      request.nodeId,
      textArray(tokens),
      request.dispatchPerSecond,
      request.fifoGroups,
      counters.firstEntry(queue),
      handlers ? textArray(handlers) : null,
      expected?.incarnation ?? null,
      expected?.version ?? null,
      Math.ceil(now / startStepMs) * startStepMs,
      excludedHandlers ? textArray(excludedHandlers) : null,
      (handlers || excludedHandlers || labels ? maxFilteredGroups : 0) +
        (maxPerGroup > 0 ? Math.ceil(request.maxInFlight / maxPerGroup) : 0),
      labels ? textArray(labels) : null,
    ];
    const hasGroupLimit = maxPerGroup > 0 && !request.fifoGroups;
    if (hasGroupLimit) values.push(maxPerGroup);
    const text = hasGroupLimit ? claimWithGroupLimit : claim;
    const rows = await connections.transact(async (transaction) => {
      // Sent together: the claim lock is not held for a round trip of this server.
      const sent = [
        transaction.query(lockAndPromote, [queue, now]),
        transaction.queryLast<ClaimedRow>(text, values),
      ] as const;
      return (await Promise.all(sent))[1];
    });
    const [first] = rows;
    if (!first && expected) throw queueChanged(queue);
    const tasks = rows
      .filter(([, position]) => position !== null)
      .toSorted((a, b) => a[1]! - b[1]!)
      .map((row) => toClaimedTask(row, request, tokens));
    return { tasks, isLimited: first !== undefined && tasks.length >= first[0] };
  }
}

/** Groups that a claim with a filter visits: the tasks of some may all be filtered out. */
const maxFilteredGroups = 1_000;

/** A claim is small if it fills less than this part of what may be in flight. */
const smallPart = 4;
/** A claim of this many tasks never waits. */
const largeClaim = 50;
const delayMs = 10;

/**
 * Delays small claims of a busy queue, so that slots that become free one by one are filled by one
 * claim: it costs the database about the same for one task and for fifty.
 */
export class ClaimThrottle {
  /** Monotonic time of the last full claim of each queue. */
  readonly #fullAt = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  async wait({ queue, limit, maxInFlight }: Request): Promise<void> {
    const fullAt = this.#fullAt.get(queue);
    if (fullAt === undefined || limit >= largeClaim || limit * smallPart > maxInFlight) return;
    const leftMs = fullAt + delayMs - this.clock.monotonic();
    if (leftMs > 0) await this.clock.sleep(leftMs);
  }

  claimed({ queue, limit }: Request, count: number): void {
    if (count >= limit) this.#fullAt.set(queue, this.clock.monotonic());
    else this.#fullAt.delete(queue);
  }
}

type Request = Pick<ClaimRequest, 'queue' | 'limit' | 'maxInFlight'>;

/** A row of the claim statement. Without a position it has the room alone. */
export type ClaimedRow = [
  /** How many tasks the limits allowed. */
  room: number,
  /** From 1: the index of its token. */
  position: number | null,
  id: string,
  priority: number,
  groupKey: string | null,
  expiresAt: number | null,
  attempt: number,
  totalAttempts: number,
  redriveCount: number,
  lastError: string | null,
  attempts: string,
  handlerRef: string,
  contentType: string,
  headers: string | null,
  createdAt: number,
  submittedBy: string,
  payload: Buffer,
  options: string | null,
  flow: string | null,
];

export function toClaimedTask(
  row: ClaimedRow,
  request: ClaimRequest,
  tokens: readonly string[],
): WholeTask {
  const [, position, id, priority, groupKey, expiresAt, attempt, totalAttempts] = row;
  const [redriveCount, lastError, attempts, handlerRef, contentType, headers] = row.slice(8) as [
    number,
    string | null,
    string,
    string,
    string,
    string | null,
  ];
  return {
    id,
    queue: request.queue,
    handlerRef,
    status: 'IN_FLIGHT',
    payloadContentType: contentType,
    headers: headers === null ? {} : (JSON.parse(headers) as Record<string, string>),
    priority,
    groupKey,
    attempt,
    totalAttempts,
    redriveCount,
    createdAt: row[14],
    updatedAt: request.now,
    dueAt: null,
    expiresAt,
    lease: {
      token: tokens[position! - 1]!,
      expiresAt: request.leaseExpiresAt,
      nodeId: request.nodeId,
      startedAt: request.now,
      isAsync: false,
    },
    completedAt: null,
    deadAt: null,
    deadReason: null,
    lastError: lastError === null ? null : (JSON.parse(lastError) as LastError),
    submittedBy: row[15],
    options: optionsOf(row[17]),
    payload: row[16],
    attempts: attemptsOf(attempts),
    flow: claimedFlow(row[18]),
  };
}

function claimedFlow(text: string | null): TaskFlow | null {
  const flow = text === null ? null : (JSON.parse(text) as TaskFlow);
  return flow?.wait ? wokenByTime(flow) : flow;
}

interface QueueShare {
  /** Servers that recently claimed from this queue, this one included. */
  claimants: number;
  joinedAt: number;
  /** When the leases of this server expire, by token. */
  leases: Map<string, number>;
}

const joinIntervalMs = 1_000;
/** A count of claimants older than this is read again before a claim. */
const maxCountAgeMs = 3_000;

/**
 * Splits `max_in_flight` evenly between the servers that claim from a queue. Otherwise the first one
 * would take all slots, and each freed slot again. A server that stops claiming stops counting five
 * seconds later.
 */
export class ServerShare {
  readonly #queues = new Map<string, QueueShare>();

  constructor(
    private readonly connections: Connections,
    private readonly instance: string,
    private readonly monotonic: () => number,
  ) {}

  /** How many tasks this server may claim. */
  async room({ queue, limit, maxInFlight, now }: ClaimRequest): Promise<number> {
    const share = this.#share(queue);
    const ageMs = this.monotonic() - share.joinedAt;
    if (ageMs >= joinIntervalMs) {
      const joined = this.#join(queue, share);
      if (ageMs >= maxCountAgeMs) await joined;
      // The claim does not wait for the disk; if the database is away, it fails itself.
      else joined.catch(() => undefined);
    }
    if (share.claimants === 1) return limit;
    for (const [token, end] of share.leases) if (end <= now) share.leases.delete(token);
    const part = Math.ceil(maxInFlight / share.claimants);
    return Math.min(limit, part - share.leases.size);
  }

  taken(queue: string, token: string, leaseExpiresAt: number): void {
    this.#share(queue).leases.set(token, leaseExpiresAt);
  }

  /** A lease that another server took counts there. */
  extended(queue: string, token: string, leaseExpiresAt: number): void {
    const leases = this.#queues.get(queue)?.leases;
    if (leases?.has(token)) leases.set(token, leaseExpiresAt);
  }

  ended(queue: string, token: string): void {
    this.#queues.get(queue)?.leases.delete(token);
  }

  async #join(queue: string, share: QueueShare): Promise<void> {
    share.joinedAt = this.monotonic();
    const values = [queue, this.instance];
    const [row] = await this.connections.query<{ claimants: number }>(joinClaimants, values);
    share.claimants = row?.claimants ?? 1;
  }

  #share(queue: string): QueueShare {
    let share = this.#queues.get(queue);
    if (!share) {
      share = { claimants: 1, joinedAt: -Infinity, leases: new Map() };
      this.#queues.set(queue, share);
    }
    return share;
  }
}
