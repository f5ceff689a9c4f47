import type { Dispatcher } from 'undici';
import type { DialTools } from './dial.js';
import type { Exchange } from './exchange.js';
import { Line } from './line.js';
import type { AddressPolicy } from './policy.js';
import type { Target } from './target.js';

export interface LaneLimits {
  /** Connections to one origin under one policy. Requests beyond them wait in line. */
  connectionsPerLane: number;
  /** Idle lanes beyond this number are closed, the one unused for longest first. */
  lanes: number;
  /** A connection older than this takes one more request and closes, so that names resolve anew. */
  connectionAgeMs: number;
}

type Options = Dispatcher.DispatchOptions;

/** The connections to one origin under one policy. */
export class Lane {
  readonly #lines = new Set<Line>();
  // The line used last is used next, so that surplus connections fall idle and close.
  readonly #idle: Line[] = [];
  readonly #waiting = new Map<Exchange, Options>();
  lastUse = 0;

  constructor(
    readonly key: string,
    readonly origin: string,
    readonly tools: DialTools,
    readonly limits: LaneLimits,
  ) {}

  get isIdle(): boolean {
    return this.#idle.length === this.#lines.size && this.#waiting.size === 0;
  }

  enter(exchange: Exchange, options: Options): void {
    const line = this.#idle.pop() ?? this.#newLine();
    if (line === undefined) this.#waiting.set(exchange, options);
    else line.carry(exchange, options);
  }

  /** To be called once for each exchange, when it has settled. */
  leave(exchange: Exchange): void {
    const { line } = exchange;
    if (line === undefined) return void this.#waiting.delete(exchange);
    line.rest();
    this.#idle.push(line);
    // Not at once: this runs inside undici's parser, which is not done with the line yet.
    if (this.#waiting.size > 0) queueMicrotask(() => this.#serveWaiting());
  }

  underway(): Exchange[] {
    const carried = [...this.#lines].flatMap((line) => line.exchange ?? []);
    return [...carried, ...this.#waiting.keys()];
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#lines].map((line) => line.destroy()));
  }

  #serveWaiting(): void {
    for (const [exchange, options] of this.#waiting) {
      const line = this.#idle.pop();
      if (line === undefined) return;
      this.#waiting.delete(exchange);
      line.carry(exchange, options);
    }
  }

  #newLine(): Line | undefined {
    if (this.#lines.size >= this.limits.connectionsPerLane) return undefined;
    const line = new Line(this.origin, this.tools, this.limits.connectionAgeMs);
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
  #uses = 0;

  constructor(
    readonly tools: DialTools,
    readonly limits: LaneLimits,
  ) {}

  find(target: Target, policy: AddressPolicy): Lane {
    const key = `${target.origin} ${policy.key}`;
    let lane = this.#lanes.get(key);
    if (lane === undefined) {
      lane = new Lane(key, target.origin, this.tools, this.limits);
      this.#lanes.set(key, lane);
    }
    lane.lastUse = ++this.#uses;
    return lane;
  }

  enter(lane: Lane, exchange: Exchange, options: Options): void {
    lane.enter(exchange, options);
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

  async close(): Promise<void> {
    const lanes = [...this.#lanes.values()];
    this.#lanes.clear();
    await Promise.all(lanes.map((lane) => lane.destroy()));
  }

  #trim(): void {
    if (this.#lanes.size <= this.limits.lanes) return;
    const idle = [...this.#lanes.values()].filter((lane) => lane.isIdle);
    idle.sort((one, other) => one.lastUse - other.lastUse);
    for (const lane of idle.slice(0, this.#lanes.size - this.limits.lanes)) {
      this.#lanes.delete(lane.key);
      void lane.destroy();
    }
  }
}
