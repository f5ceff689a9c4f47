import { memoryLog, type MemoryLog } from '../base/log.js';
import { seededRandom, type Random, type Clock } from '../base/clock-and-random.js';
import type { World } from '../base/world.js';
import { SimulationFailure, Scope } from './scope.js';
import { Journal, Timeline } from './timeline.js';
import { Rest, type Activity } from './rest.js';

export interface SimulationOptions {
  /** What the wall clocks show at the start. */
  startAt?: number;
  /** Fault points and how likely each is to strike: `{'store.fail_after': 0.01}`. */
  faults?: Readonly<Record<string, number>>;
  /** How many of the newest events stay readable. */
  keepEvents?: number;
  /** Raise it for code that lets the event loop turn without touching the world. */
  quietTurns?: number;
  /** Real time that registered work may take. */
  workLimitMs?: number;
}

const maxTimersPerInstant = 100_000;
const aDayMs = 86_400_000;

/** A world with virtual time, made from a seed. See `index.ts` for how to use it. */
export class Simulation implements World {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: MemoryLog;
  readonly journal: Journal;
  readonly timeline = new Timeline();
  readonly activity: Activity = { count: 0 };
  readonly rest: Rest;
  /** How often each fault has struck. A test whose faults never do proves nothing. */
  readonly hits = new Map<string, number>();
  readonly #root: Scope;
  readonly #nodes = new Map<string, Scope>();
  readonly #faults: Map<string, number>;
  readonly #streams = new Map<string, Random>();
  readonly #startAt: number;
  #wallSkewMs = 0;
  #failure: { error: unknown } | undefined;

  constructor(
    readonly seed: number,
    options: SimulationOptions = {},
  ) {
    this.#startAt = options.startAt ?? Date.UTC(2030, 0, 1);
    this.#faults = new Map(Object.entries(options.faults ?? {}));
    this.journal = new Journal(options.keepEvents ?? 1000);
    this.rest = new Rest(this.activity, {
      quietTurns: options.quietTurns ?? 2,
      maxTurns: 100_000,
      workLimitMs: options.workLimitMs ?? 10_000,
    });
    this.#root = this.#scope('', 1);
    this.clock = this.#root.clock;
    this.random = this.#root.random;
    this.log = this.#root.log;
  }

  /** The node of that name: the living one, or a new life after a crash. */
  node(name: string): Scope {
    if (name === '') throw new Error('A node needs a name');
    const before = this.#nodes.get(name);
    if (before?.alive) return before;
    const node = this.#scope(name, (before?.life ?? 0) + 1);
    this.#nodes.set(name, node);
    this.note('start', { life: node.life }, name);
    return node;
  }

  /** Lets virtual time pass. */
  async runFor(durationMs: number): Promise<void> {
    const end = this.timeline.elapsedMs + durationMs;
    await this.settle();
    while ((this.timeline.nextAt() ?? Infinity) <= end) await this.#step();
    this.timeline.moveTo(end);
  }

  /** Runs until `condition` holds, checked when the code is idle; fails when it never does. */
  async runUntil(condition: () => boolean, limitMs = aDayMs): Promise<void> {
    const end = this.timeline.elapsedMs + limitMs;
    await this.settle();
    while (!condition()) {
      const next = this.timeline.nextAt();
      if (next === undefined) throw this.#report(new Error('no timer is left to run'));
      if (next > end) {
        this.timeline.moveTo(end);
        throw this.#report(new Error(`the condition did not hold within ${limitMs} ms`));
      }
      await this.#step();
    }
  }

  /** Runs until `promise` settles; returns its value or throws its error. */
  async complete<T>(promise: Promise<T>, limitMs = aDayMs): Promise<T> {
    let done = false;
    const finish = () => void (done = true);
    promise.then(finish, finish);
    await this.runUntil(() => done, limitMs);
    return await promise;
  }

  /** Runs everything that needs no time to pass. */
  async settle(): Promise<void> {
    try {
      await this.rest.settle();
    } catch (error) {
      throw this.#report(error);
    }
    if (this.#failure) throw this.#report(this.#failure.error);
  }

  /** Registers real work, such as a disk write, so that virtual time waits for it. */
  pending<T>(promise: Promise<T>, label?: string): Promise<T> {
    return this.#root.pending(promise, label);
  }

  /** Makes the run fail at its next step. The first failure is the one reported. */
  fail(error: unknown): void {
    this.#failure ??= { error };
  }

  /** Writes into the journal. */
  note(kind: string, fields: object = {}, scope = ''): void {
    this.activity.count++;
    this.journal.add({ at: this.timeline.elapsedMs, scope, kind, fields });
  }

  /** True with probability `p`. */
  chance(p: number): boolean {
    return this.#stream('chance').next() < p;
  }

  /** A whole number between the two, both included. */
  between([low, high]: readonly [low: number, high: number]): number {
    return this.#stream('between').integer(low, high);
  }

  /** True when the named fault strikes now. A fault without a probability never does. */
  fault(name: string, scope = ''): boolean {
    const p = this.#faults.get(name) ?? 0;
    if (p <= 0 || this.#stream(`fault ${name}`).next() >= p) return false;
    this.hits.set(name, (this.hits.get(name) ?? 0) + 1);
    this.note('fault', { name }, scope);
    return true;
  }

  /** Changes how likely a fault is, for instance to 0 for a quiet end. */
  setFault(name: string, probability: number): void {
    this.#faults.set(name, probability);
  }

  stopFaults(): void {
    this.#faults.clear();
  }

  /** Does something again and again, each time after a pause between the two. */
  disturb(pauseMs: readonly [low: number, high: number], action: () => void): { stop(): void } {
    let stopped = false;
    const pauses = this.#stream('disturb');
    const again = () => {
      this.clock.after(pauses.integer(...pauseMs), () => {
        if (stopped) return;
        action();
        again();
      });
    };
    again();
    return { stop: () => void (stopped = true) };
  }

  /** Sets every wall clock forward or back. */
  jumpClock(byMs: number): void {
    this.#wallSkewMs += byMs;
    this.note('clock jump', { by_ms: byMs });
  }

  wallTime(): number {
    return this.#startAt + this.timeline.elapsedMs + this.#wallSkewMs;
  }

  /** Which of two nodes goes first at one instant: fair over time, the same for the same seed. */
  rankOf(scope: string, at: number): number {
    return hash32(`${this.seed} rank ${scope} ${at}`);
  }

  async #step(): Promise<void> {
    const timer = this.timeline.takeNext();
    if (!timer) return;
    this.#countInstant(timer.at);
    this.note('timer', {}, timer.scope);
    try {
      timer.run?.();
    } catch (error) {
      this.fail(error);
    }
    await this.settle();
  }

  #instant = { at: -1, timers: 0 };

  // A timer that sets itself again without delay would keep time from passing.
  #countInstant(at: number): void {
    if (this.#instant.at !== at) this.#instant = { at, timers: 0 };
    if (++this.#instant.timers > maxTimersPerInstant) {
      throw this.#report(new Error(`more than ${maxTimersPerInstant} timers ran at one instant`));
    }
  }

  #report(error: unknown): SimulationFailure {
    if (error instanceof SimulationFailure) return error;
    return new SimulationFailure(this.seed, this.timeline.elapsedMs, this.journal.lines, error);
  }

  #scope(name: string, life: number): Scope {
    const log = memoryLog(({ level, message, fields }) =>
      this.note('log', { level, message, ...fields }, name),
    );
    return new Scope(name, life, this.#counted(this.#seeded(`node ${name} ${life}`)), log, this);
  }

  // Each use of chance has a stream of its own, so that a new one does not change the others.
  #stream(purpose: string): Random {
    let stream = this.#streams.get(purpose);
    if (!stream) this.#streams.set(purpose, (stream = this.#counted(this.#seeded(purpose))));
    return stream;
  }

  #seeded(purpose: string): Random {
    return seededRandom(hash32(`${this.seed} ${purpose}`));
  }

  #counted(random: Random): Random {
    const { activity } = this;
    const counted = <Drawn>(draw: (random: Random) => Drawn): Drawn => {
      activity.count++;
      return draw(random);
    };
    return {
      next: () => counted((from) => from.next()),
      integer: (low, high) => counted((from) => from.integer(low, high)),
      bytes: (length) => counted((from) => from.bytes(length)),
      ulid: (now) => counted((from) => from.ulid(now)),
    };
  }
}

/** FNV-1a. */
function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
