import type { Timer } from '../base/clock-and-random.js';
import { createHash } from 'node:crypto';

/** A timer in virtual time. */
interface VirtualTimer {
  readonly at: number;
  /** Decides between the timers of different nodes that are due at the same instant. */
  readonly rank: number;
  /** Timers of one node that are due together run in the order they were made, as in Node. */
  readonly sequence: number;
  readonly scope: string;
  /** None any more once it is cancelled. */
  run: (() => void) | undefined;
}

/**
 * Virtual time: it stands still while code runs and leaps to the next timer when all is quiet.
 * It never goes back; only the clock on the wall does.
 */
export class Timeline {
  #elapsedMs = 0;
  #sequence = 0;
  // A binary heap, soonest first. A cancelled timer stays until it comes to the top.
  readonly #heap: VirtualTimer[] = [];

  get elapsedMs(): number {
    return this.#elapsedMs;
  }

  after(delayMs: number, scope: string, rankOf: (at: number) => number, run: () => void): Timer {
    if (Number.isNaN(delayMs)) throw new RangeError('A timer needs a delay, not NaN');
    const at = this.#elapsedMs + Math.max(0, delayMs);
    const sequence = this.#sequence++;
    const timer: VirtualTimer = { at, rank: rankOf(at), sequence, scope, run };
    this.#push(timer);
    return { cancel: () => (timer.run = undefined) };
  }

  /** When the next timer is due. */
  nextAt(): number | undefined {
    while (this.#heap[0] && !this.#heap[0].run) this.#pop();
    const at = this.#heap[0]?.at;
    return at === Infinity ? undefined : at;
  }

  /** Moves to the next timer and takes it off the list. */
  takeNext(): VirtualTimer | undefined {
    if (this.nextAt() === undefined) return undefined;
    const next = this.#pop();
    this.#elapsedMs = next.at;
    return next;
  }

  moveTo(elapsedMs: number): void {
    this.#elapsedMs = Math.max(this.#elapsedMs, elapsedMs);
  }

  #push(timer: VirtualTimer): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(timer);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isSooner(timer, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = timer;
  }

  #pop(): VirtualTimer {
    const heap = this.#heap;
    const top = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isSooner(heap[child + 1]!, heap[child]!)) child++;
      if (!isSooner(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return top;
  }
}

function isSooner(a: VirtualTimer, b: VirtualTimer): boolean {
  if (a.at !== b.at) return a.at < b.at;
  if (a.rank !== b.rank) return a.rank < b.rank;
  return a.sequence < b.sequence;
}

/** One thing that happened. */
export interface SimulationEvent {
  /** Virtual milliseconds since the start. */
  at: number;
  /** The node it happened on; "" for the world. */
  scope: string;
  kind: string;
  fields: object;
}

/**
 * Everything that happened, in order. Two runs of one seed must have the same hash; keeping only
 * the newest events in memory, it can cover days.
 */
export class Journal {
  #count = 0;
  readonly #hash = createHash('sha256');
  readonly #lines: string[] = [];

  /** `keep` is how many of the newest events stay readable. */
  constructor(private readonly keep: number) {}

  get count(): number {
    return this.#count;
  }

  /** The newest events, oldest of them first, one line each. */
  get lines(): readonly string[] {
    return this.#lines.slice(-this.keep);
  }

  add({ at, scope, kind, fields }: SimulationEvent): void {
    const text = JSON.stringify(fields, plainly);
    const line = `${at} ${scope || '-'} ${kind}${text === '{}' ? '' : ` ${text}`}`;
    this.#count++;
    this.#hash.update(line).update('\n');
    this.#lines.push(line);
    if (this.#lines.length >= 2 * this.keep) this.#lines.splice(0, this.#lines.length - this.keep);
  }

  /** Of all events up to now. */
  hash(): string {
    return this.#hash.copy().digest('hex');
  }
}

// Stacks hold line numbers, which are no part of what happened.
function plainly(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  return value;
}
