import type { Log } from '@millrace/kit/log';
import { bigintArray, smallintArray } from './arrays.js';
import type { Connections } from './connections.js';
import { priorities, type Floors } from './floors.js';
import { lookBelow, readFloors, shareFloors } from './statements/floors.sql.js';

interface QueueLook {
  queueNo: number;
  /** When to look again, by the steady clock. */
  nextAt: number;
  /** Before this due time is still to be looked; undefined between two looks. */
  before: number | undefined;
  /** How much of it at once. */
  widthMs: number;
  /** How long the parts of this look have taken. */
  tookMs: number;
  hasWarned: boolean;
  sharedAt: number;
}

/** Others wait for a part, so a longer one is given up. */
const mostPartMs = 200;
const firstWidthMs = 1_000;
const shortestMs = 1_000;
/** It rests so many times as long as it looked. */
const restFactor = 20;
const shareEveryMs = 5_000;
const deepWords =
  'PostgreSQL keeps very many rows of tasks that are over. A transaction that has been open for ' +
  'long may hold them: see backend_xmin in pg_stat_activity, and pg_replication_slots';
const noEnd = Number.MAX_SAFE_INTEGER;
const allLanes = smallintArray(priorities);

/**
 * Finds what became ready below the floors: by another server, or by a commit that took its time.
 * All of it is looked through at once, every second, unless much is dead there and cannot be cleaned
 * up: then in parts, from the floors downwards, with rests in between.
 */
export class Looks {
  readonly #looks = new Map<string, QueueLook>();

  constructor(
    private readonly connections: Pick<Connections, 'ask' | 'askWithin'>,
    private readonly floors: Floors,
    private readonly monotonic: () => number,
    private readonly log: Log,
  ) {}

  /** Takes over how far others are, so that a server that begins need not look through everything. */
  async start(): Promise<void> {
    const rows = await this.connections.ask<{ name: string; queue_no: number; above: string }>(
      readFloors,
    );
    for (const { name, queue_no: queueNo, above } of rows) {
      this.floors.adopt(name, queueNo, JSON.parse(above) as number[]);
    }
  }

  /** Looks, where it is time to. */
  async look(queue: string): Promise<void> {
    const queueNo = this.floors.queueNo(queue);
    if (queueNo === undefined) return;
    const look = this.#lookOf(queue, queueNo);
    const startedAt = this.monotonic();
    if (startedAt < look.nextAt) return;
    // One at a time.
    look.nextAt = Infinity;
    let isWhole = false;
    try {
      isWhole = await this.#lookAtPart(queue, look);
    } finally {
      const now = this.monotonic();
      const restMs = restFactor * (now - startedAt);
      look.nextAt = now + (isWhole ? Math.max(shortestMs, restMs) : restMs);
    }
    await this.#share(queue, look);
  }

  /** Whether all was looked at now. */
  async #lookAtPart(queue: string, look: QueueLook): Promise<boolean> {
    const above = this.floors.above(queue);
    const scheduledFrom = this.floors.scheduledFrom(queue);
    const before = look.before ?? Math.max(...above, scheduledFrom) + 1;
    const from = Math.max(0, before - look.widthMs);
    const startedAt = this.monotonic();
    const found = await this.connections.askWithin<{ priority: number | null; due_at: number }>(
      mostPartMs,
      lookBelow,
      [look.queueNo, allLanes, bigintArray(above), scheduledFrom, from, before],
    );
    const tookMs = this.monotonic() - startedAt;
    look.tookMs += tookMs;
    if (!found) {
      this.#narrow(queue, look, before);
      return false;
    }
    for (const { priority, due_at: due } of found) {
      if (priority === null) this.floors.awaits(queue, due);
      else this.floors.lower(queue, priority, due);
    }
    if (from > 0) {
      look.before = from;
      if (tookMs < mostPartMs / 4) look.widthMs *= 2;
      return false;
    }
    this.#lookedThrough(queue, look);
    return true;
  }

  #lookedThrough(queue: string, look: QueueLook): void {
    const isDeep = look.tookMs > mostPartMs;
    this.floors.setDeep(queue, isDeep);
    if (isDeep && !look.hasWarned) this.log.warn({ queue }, deepWords);
    look.hasWarned = isDeep;
    look.before = undefined;
    look.tookMs = 0;
    look.widthMs = isDeep ? firstWidthMs : noEnd;
  }

  /** It took too long: less of it at once, and what is as little as can be is passed over. */
  #narrow(queue: string, look: QueueLook, before: number): void {
    if (look.widthMs === noEnd) look.tookMs = 0;
    this.floors.setDeep(queue, true);
    look.before = look.widthMs === 1 ? before - 1 : before;
    look.widthMs = Math.max(1, Math.floor(Math.min(look.widthMs, firstWidthMs * 4) / 4));
  }

  async #share(queue: string, look: QueueLook): Promise<void> {
    const now = this.monotonic();
    if (now - look.sharedAt < shareEveryMs) return;
    look.sharedAt = now;
    const above = JSON.stringify(this.floors.above(queue));
    await this.connections.ask(shareFloors, [look.queueNo, above]);
  }

  forget(queue: string): void {
    this.#looks.delete(queue);
  }

  #lookOf(queue: string, queueNo: number): QueueLook {
    let look = this.#looks.get(queue);
    if (look?.queueNo !== queueNo) {
      look = {
        queueNo,
        nextAt: -Infinity,
        before: undefined,
        widthMs: noEnd,
        tookMs: 0,
        hasWarned: false,
        sharedAt: -Infinity,
      };
      this.#looks.set(queue, look);
    }
    return look;
  }
}
