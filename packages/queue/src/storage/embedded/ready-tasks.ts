import type { RowReader } from '@millrace/db';
import { after, groupBytes, idOf, readyGroup, readyKey, readyStart, timeOf } from './keys.js';

/** So many tasks of one group are walked over before the next group is looked up. */
const maxGroupSteps = 4;
/** So many more are read of one group at a time, at most. */
const maxRefill = 512;
/** So many tasks may be passed over in one go; the rest waits for the next. */
const maxSkipped = 10_000;

/** The group key whose turn was last, by priority. */
export type Turns = Record<number, string | null>;

/**
 * By priority, the last task without a group that was picked, if all before it are gone too. What
 * was claimed a moment ago is still in the file, and walking over it each time would cost more than
 * the claim.
 */
export type LowWaterMarks = Record<number, readonly [due: number, id: string]>;

/** A task without a group becomes ready: the floor must not be above it. */
export function lowerMark(floors: LowWaterMarks, priority: number, due: number, id: string): void {
  const mark = floors[priority];
  if (!mark) return;
  const time = Math.floor(due);
  if (time < mark[0] || (time === mark[0] && id <= mark[1])) delete floors[priority];
}

/** What is kept of a queue's ready tasks beside their rows. */
export interface ReadyOrder {
  turns: Turns;
  floors: LowWaterMarks;
  /** A bit for each priority that may have ready tasks. */
  lanes: number;
}

/**
 * Picks up to `limit` ready tasks of a queue: higher priority first, within a priority the group
 * keys in turn from where the last turn ended, within a group by due time and id. It leaps from
 * group to group, so it costs by what it picks, not by what is ready. Moves `order` on. Tasks that
 * `accept` does not want are passed over.
 */
export function pickReady(
  rows: RowReader,
  queue: number,
  order: ReadyOrder,
  limit: number,
  accept: (key: Buffer) => boolean,
): readonly Buffer[] {
  const picks = new Picks(limit, accept);
  for (let priority = 9; priority >= 0 && !picks.isOver; priority--) {
    if (!(order.lanes & (1 << priority))) continue;
    const scan = new PriorityScan(rows, queue, priority, picks);
    scan.pick(order);
    if (scan.isEmpty) order.lanes &= ~(1 << priority);
  }
  return picks.keys;
}

class Picks {
  readonly keys: Buffer[] = [];
  skipped = 0;

  constructor(
    private readonly limit: number,
    private readonly accept: (key: Buffer) => boolean,
  ) {}

  get left(): number {
    return this.limit - this.keys.length;
  }

  get isOver(): boolean {
    return this.left <= 0 || this.skipped >= maxSkipped;
  }

  offer(key: Buffer): boolean {
    if (this.accept(key)) {
      this.keys.push(key);
      return true;
    }
    this.skipped++;
    return false;
  }
}

/** The ready tasks of one priority. */
class PriorityScan {
  readonly #start: Buffer;
  readonly #end: Buffer;
  #groups: GroupCursor[] = [];
  /** It was walked from end to end, and there was nothing. */
  isEmpty = true;

  constructor(
    private readonly rows: RowReader,
    private readonly queue: number,
    private readonly priority: number,
    private readonly picks: Picks,
  ) {
    this.#start = readyStart(queue, priority);
    this.#end = after(this.#start);
  }

  pick({ turns, floors }: ReadyOrder): void {
    const { picks, priority } = this;
    const last = turns[priority];
    const before = { picked: picks.keys.length, skipped: picks.skipped };
    const start = this.#startAbove(floors[priority]);
    if (last === undefined) {
      this.#firstRound(start, this.#end);
    } else {
      const beyond = after(Buffer.concat([this.#start, groupBytes(last)]));
      this.#firstRound(beyond, this.#end);
      this.#firstRound(start, beyond);
    }
    while (this.#groups.length > 0 && !picks.isOver) this.#nextRound();
    const picked = picks.keys.slice(before.picked);
    if (picked.length === 0) return;
    turns[priority] = groupOf(picked.at(-1)!);
    const free = picked.findLast((key) => groupOf(key) === null);
    if (!free) return;
    if (picks.skipped > before.skipped) delete floors[priority];
    else floors[priority] = [timeOf(free), idOf(free)];
  }

  #startAbove(mark: LowWaterMarks[number] | undefined): Buffer {
    if (!mark) return this.#start;
    const key = readyKey(this.queue, this.priority, groupBytes(null), mark[0], mark[1]);
    return Buffer.concat([key, Buffer.of(0)]);
  }

  /** The first task of each group, in the order of the groups. */
  #firstRound(start: Buffer, end: Buffer): void {
    let from: Buffer | undefined = start;
    while (from && !this.picks.isOver) from = this.#walk(from, end);
  }

  /** Walks over groups with few tasks. Returns where to leap to, out of a group with many. */
  #walk(from: Buffer, end: Buffer): Buffer | undefined {
    let group: GroupCursor | undefined;
    for (const { key } of this.rows.range({ start: from, end })) {
      if (!group?.holds(key)) {
        group = new GroupCursor(this.rows, key, this.picks);
        this.#groups.push(group);
        this.isEmpty = false;
      } else if (group.seen >= maxGroupSteps) {
        if (!group.hasPicked) group.pick();
        return group.end;
      }
      group.push(key);
      if (!group.hasPicked) group.pickBuffered();
      if (this.picks.isOver) return undefined;
    }
    return undefined;
  }

  #nextRound(): void {
    const left: GroupCursor[] = [];
    for (const group of this.#groups) {
      if (this.picks.isOver) return;
      if (group.pick()) left.push(group);
    }
    this.#groups = left;
  }
}

/** How far the picking has come in one group. */
class GroupCursor {
  /** The first key after the group. */
  readonly end: Buffer;
  readonly #prefix: Buffer;
  #buffer: Buffer[] = [];
  #at = 0;
  #last: Buffer;
  #ended = false;
  seen = 0;
  hasPicked = false;

  constructor(
    private readonly rows: RowReader,
    first: Buffer,
    private readonly picks: Picks,
  ) {
    this.#prefix = first.subarray(0, 6 + readyGroup(first).length);
    this.#last = first;
    this.end = after(this.#prefix);
  }

  holds(key: Buffer): boolean {
    const { length } = this.#prefix;
    return key.length > length && this.#prefix.compare(key, 0, length) === 0;
  }

  push(key: Buffer): void {
    this.#buffer.push(key);
    this.#last = key;
    this.seen++;
  }

  /** Picks the next task. False: the group has none left, or enough was looked at. */
  pick(): boolean {
    for (;;) {
      if (this.pickBuffered()) return true;
      if (this.#ended || this.picks.isOver) return false;
      this.#refill(Math.min(Math.max(this.picks.left, this.seen), maxRefill));
    }
  }

  /** As `pick`, of what is at hand. */
  pickBuffered(): boolean {
    while (this.#at < this.#buffer.length) {
      if (!this.picks.offer(this.#buffer[this.#at++]!)) continue;
      this.hasPicked = true;
      return true;
    }
    return false;
  }

  #refill(limit: number): void {
    const start = Buffer.concat([this.#last, Buffer.of(0)]);
    const before = this.seen;
    this.#buffer = [];
    this.#at = 0;
    for (const { key } of this.rows.range({ start, end: this.end, limit })) this.push(key);
    this.#ended = this.seen - before < limit;
  }
}

function groupOf(key: Buffer): string | null {
  const group = readyGroup(key);
  return group[0] === 0 ? null : group.toString('utf8', 1, group.length - 1);
}
