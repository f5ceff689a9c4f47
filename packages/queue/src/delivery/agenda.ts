import type { Clock } from '@millrace/kit/clock';
import { nextStartAt } from '../core/start-window.js';
import type { TaskStore } from '../storage/task-store.js';
import { Alarm } from './alarm.js';
import type { Dispatcher } from './dispatcher.js';
import type { Lane } from './lane.js';
import type { Retention } from './retention.js';
import type { StoreHealth } from './store-health.js';
import type { Upkeep } from './upkeep.js';

export interface AgendaTools {
  store: TaskStore;
  clock: Clock;
  health: StoreHealth;
  dispatcher: Dispatcher;
  upkeep: Upkeep;
  retention: Retention;
}

/**
 * Another server may have crashed, a clock may have been set, a hint may have been lost: this often
 * everything is looked at anew, so that an ended lease is found well within five seconds.
 */
const beatMs = 2_000;
/** Between two looks at what falls due, however many claims ask for one. */
const pauseMs = 20;
const fifoPauseMs = 200;

type Wish = 'plan' | 'upkeep' | 'beat';

/** Knows when something falls due by itself, and sees to it then. */
export class Agenda {
  readonly #upkeepAlarm: Alarm;
  readonly #beatAlarm: Alarm;
  readonly #stopping = new AbortController();
  #wishes = new Set<Wish>();
  #failures = 0;
  #tried: (() => void) | undefined;
  #work: Promise<void> | undefined;
  #sweeping: Promise<void> | undefined;

  constructor(private readonly tools: AgendaTools) {
    this.#upkeepAlarm = new Alarm(tools.clock, () => this.#wish('upkeep'));
    this.#beatAlarm = new Alarm(tools.clock, () => this.#wish('beat'));
  }

  /** Resolves when everything was looked at once, or could not be; then it is tried again. */
  async start(): Promise<void> {
    const triedOnce = new Promise<void>((resolve) => (this.#tried = resolve));
    this.#wish('beat');
    await triedOnce;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#upkeepAlarm.cancel();
    this.#beatAlarm.cancel();
    await Promise.all([this.#work, this.#sweeping]);
  }

  plan(): void {
    this.#wish('plan');
  }

  upkeepIn(delayMs: number): void {
    if (!this.#stopping.signal.aborted) this.#upkeepAlarm.ringIn(delayMs);
  }

  #wish(wish: Wish): void {
    if (this.#stopping.signal.aborted) return;
    this.#wishes.add(wish);
    this.#work ??= this.#grantAll();
  }

  async #grantAll(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#wishes.size > 0 && !signal.aborted) {
      const wishes = this.#wishes;
      this.#wishes = new Set();
      let restMs = pauseMs;
      try {
        await this.#grant(wishes);
        this.#failures = 0;
        this.tools.health.answered('upkeep');
      } catch (error) {
        for (const wish of wishes) this.#wishes.add(wish);
        restMs = this.tools.health.failed('upkeep', error, this.#failures++);
      }
      this.#tried?.();
      if (this.#wishes.size > 0) await this.#rest(restMs);
    }
    this.#work = undefined;
  }

  async #grant(wishes: ReadonlySet<Wish>): Promise<void> {
    const isBeat = wishes.has('beat');
    if (isBeat) this.#beatAlarm.ringIn(beatMs);
    if (isBeat || wishes.has('upkeep')) await this.tools.upkeep.run();
    await this.#planAll(isBeat);
    if (isBeat) this.#sweeping ??= this.#sweep();
  }

  async #sweep(): Promise<void> {
    try {
      await this.tools.retention.sweep();
      this.tools.health.answered('retention');
    } catch (error) {
      this.tools.health.failed('retention', error, 0);
    }
    this.#sweeping = undefined;
  }

  async #planAll(isBeat: boolean): Promise<void> {
    const { store, clock, dispatcher } = this.tools;
    const { dueByQueue, upkeepAt } = await store.nextEventAt();
    const now = clock.now();
    if (upkeepAt !== undefined) this.upkeepIn(Math.max(pauseMs, upkeepAt - now));
    for (const [name, dueAt] of dueByQueue) this.#plan(dispatcher.lane(name), dueAt, now, isBeat);
    for (const lane of dispatcher.lanes.values()) {
      if (!dueByQueue.has(lane.name)) lane.isRateLimited = false;
    }
  }

  #plan(lane: Lane, dueAt: number, now: number, isBeat: boolean): void {
    if (dueAt > now) {
      lane.isRateLimited = false;
      if (!this.#stopping.signal.aborted) lane.alarm.ringIn(dueAt - now);
    } else if (isBeat || dueAt > lane.lastClaimAt) {
      lane.isStale ||= isBeat;
      this.tools.dispatcher.wake(lane);
    } else {
      this.#planBlocked(lane, now);
    }
  }

  /** It was due at the last claim and was not claimed: its queue's limits stand against it. */
  #planBlocked(lane: Lane, now: number): void {
    const config = lane.queue?.config;
    if (!config || this.#stopping.signal.aborted) return;
    const rate = config.limits.dispatch_per_second;
    if (rate > 0) {
      lane.isRateLimited = true;
      const ownTurnAt = nextStartAt(lane.starts, now, rate);
      // Where others started what may start, nobody here knows when: it is looked at now and then.
      const waitMs = ownTurnAt === undefined ? Math.min(1000 / rate, 1000) : ownTurnAt - now;
      lane.alarm.ringIn(Math.max(waitMs, ownTurnAt === undefined ? pauseMs : 1));
    } else if (config.ordering.mode === 'group') {
      // What waits behind its group hides what falls due later in others.
      lane.alarm.ringIn(fifoPauseMs);
    }
  }

  async #rest(delayMs: number): Promise<void> {
    const { signal } = this.#stopping;
    await this.tools.clock.sleep(delayMs, signal).catch((reason: unknown) => {
      if (!signal.aborted) throw reason;
    });
  }
}
