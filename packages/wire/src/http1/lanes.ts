import type { DialTools } from './dial.js';
import type { Carrier, Exchange } from './exchange.js';
import { Line } from './line.js';
import type { AddressPolicy } from '@millrace/kit/outbound';
import type { Target } from '@millrace/kit/outbound';

export interface LaneLimits {
  /** Connections to one origin under one policy. Requests beyond them wait in line. */
  connectionsPerLane: number;
  /** Idle lanes beyond this number are closed, the one unused for longest first. */
  lanes: number;
  /** A connection older than this takes one more request and closes, so that names resolve anew. */
  connectionAgeMs: number;
}

/** The connections to one origin under one policy. */
export class Lane {
  readonly #lines = new Set<Carrier>();
  // The line used last is used next, so that surplus connections fall idle and close.
  readonly #idle: Carrier[] = [];
  readonly #waiting = new Set<Exchange>();
  lastUse = 0;

  constructor(
    readonly key: string,
    readonly tools: DialTools,
    readonly limits: LaneLimits,
  ) {}

  get isIdle(): boolean {
    return this.#idle.length === this.#lines.size && this.#waiting.size === 0;
  }

  enter(exchange: Exchange): void {
    const line = this.#idle.pop() ?? this.#newLine();
    if (line === undefined) this.#waiting.add(exchange);
    else line.carry(exchange);
  }

  /** To be called once for each exchange, when it has settled. */
  leave(exchange: Exchange): void {
    const { line } = exchange;
    if (line === undefined) return void this.#waiting.delete(exchange);
    line.rest();
    this.#idle.push(line);
    // Not at once: whoever aborts all of them must not set those in motion that come next.
    if (this.#waiting.size > 0) queueMicrotask(() => this.#serveWaiting());
  }

  underway(): Exchange[] {
    const carried = [...this.#lines].flatMap((line) => line.exchange ?? []);
    return [...carried, ...this.#waiting];
  }

  close(): void {
    for (const line of this.#lines) line.drop();
  }

  #serveWaiting(): void {
    for (const exchange of this.#waiting) {
      const line = this.#idle.pop();
      if (line === undefined) return;
      this.#waiting.delete(exchange);
      line.carry(exchange);
    }
  }

  #newLine(): Carrier | undefined {
    if (this.#lines.size >= this.limits.connectionsPerLane) return undefined;
    const line = new Line(this.tools, this.limits.connectionAgeMs);
    this.#lines.add(line);
    return line;
  }
}

/**
 * Keeps connections by origin and policy, so that one opened under a generous allowlist entry
 * never carries a request that came in under a stricter one.
 */
export class Lanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #keys = new WeakMap<Target, { policy: AddressPolicy; key: string }>();
  #uses = 0;

  constructor(
    readonly tools: DialTools,
    readonly limits: LaneLimits,
  ) {}

  find(target: Target, policy: AddressPolicy): Lane {
    const key = this.#keyOf(target, policy);
    let lane = this.#lanes.get(key);
    if (lane === undefined) {
      lane = new Lane(key, this.tools, this.limits);
      this.#lanes.set(key, lane);
    }
    lane.lastUse = ++this.#uses;
    return lane;
  }

  /** The same few targets come over and over, and a long key takes long to put together. */
  #keyOf(target: Target, policy: AddressPolicy): string {
    const known = this.#keys.get(target);
    if (known?.policy === policy) return known.key;
    const key = `${target.origin} ${policy.key}`;
    this.#keys.set(target, { policy, key });
    return key;
  }

  enter(lane: Lane, exchange: Exchange): void {
    lane.enter(exchange);
    this.#trim();
  }

  leave(lane: Lane, exchange: Exchange): void {
    lane.leave(exchange);
    this.#trim();
  }

  /** Every exchange that has not settled. Walked through seldom, so nobody keeps a list of them. */
  underway(): Exchange[] {
    return [...this.#lanes.values()].flatMap((lane) => lane.underway());
  }

  close(): void {
    for (const lane of this.#lanes.values()) lane.close();
    this.#lanes.clear();
  }

  #trim(): void {
    if (this.#lanes.size <= this.limits.lanes) return;
    const idle = [...this.#lanes.values()].filter((lane) => lane.isIdle);
    idle.sort((one, other) => one.lastUse - other.lastUse);
    for (const lane of idle.slice(0, this.#lanes.size - this.limits.lanes)) {
      this.#lanes.delete(lane.key);
      lane.close();
    }
  }
}
