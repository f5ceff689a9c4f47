import type { Simulation } from '@millrace/kit/simulation';
import type { ScheduleDefinition } from '../src/core/schedule.js';

/** The moment at which the clocks of a zone are changed, with its offsets from UTC. */
interface ClockChange {
  timezone: string;
  at: number;
  offsetBefore: number;
  offsetAfter: number;
}

const hour = 3_600_000;

/** Written out here, so that the checks do not depend on the code that they check. */
const clockChanges: readonly ClockChange[] = [
  change('Europe/Berlin', '2030-03-31T01:00Z', 1, 2),
  change('Europe/Berlin', '2030-10-27T01:00Z', 2, 1),
  change('America/New_York', '2030-03-10T07:00Z', -5, -4),
  change('America/New_York', '2030-11-03T06:00Z', -4, -5),
  change('Australia/Lord_Howe', '2030-04-06T15:00Z', 11, 10.5),
  change('Australia/Lord_Howe', '2030-10-05T15:30Z', 10.5, 11),
];

function change(timezone: string, at: string, before: number, after: number): ClockChange {
  const [offsetBefore, offsetAfter] = [before * hour, after * hour];
  return { timezone, at: Date.parse(at), offsetBefore, offsetAfter };
}

type Rule = (hour: number, minute: number, second: number) => boolean;

/** The cron expressions of the simulation, and what each means. */
const rules: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['*/15 * * * * *', (_h, _m, s) => s % 15 === 0],
  ['* * * * *', (_h, _m, s) => s === 0],
  ['*/10 * 1-2 * * *', (h, _m, s) => (h === 1 || h === 2) && s % 10 === 0],
  ['*/5 30-59 2 * * *', (h, m, s) => h === 2 && m >= 30 && s % 5 === 0],
]);

export type Timing = Pick<ScheduleDefinition, 'cron' | 'every_ms' | 'timezone'>;

const maxSearchMs = 3 * 24 * hour;

/** Knows when schedules must run near one clock change, by trying every second. */
export class Calendar {
  constructor(private readonly changed: ClockChange) {}

  randomTiming(world: Simulation): Timing {
    if (world.chance(0.4)) return { every_ms: world.between([2, 8]) * 1_000, timezone: 'UTC' };
    const crons = [...rules.keys()];
    const cron = crons[world.between([0, crons.length - 1])]!;
    return { cron, timezone: world.chance(0.7) ? this.changed.timezone : 'UTC' };
  }

  /** From `from` to `to`, both inclusive, oldest first. */
  occurrences(timing: Timing, anchor: number, from: number, to: number): number[] {
    const found: number[] = [];
    for (let at = this.next(timing, anchor, from - 1); at <= to;) {
      found.push(at);
      at = this.next(timing, anchor, at);
    }
    return found;
  }

  next({ cron, every_ms: everyMs, timezone }: Timing, anchor: number, after: number): number {
    if (everyMs !== undefined) {
      let at = anchor + everyMs;
      while (at <= after) at += everyMs;
      return at;
    }
    const rule = rules.get(cron!)!;
    for (let at = (Math.floor(after / 1_000) + 1) * 1_000; at < after + maxSearchMs; at += 1_000) {
      if (timezone === 'UTC' ? matches(rule, at) : this.#occursAt(at, rule)) return at;
    }
    throw new Error(`${cron} never matches`);
  }

  #occursAt(at: number, rule: Rule): boolean {
    const { at: changedAt, offsetBefore, offsetAfter } = this.changed;
    if (at < changedAt) return matches(rule, at + offsetBefore);
    const isSecondPass = at + offsetAfter < changedAt + offsetBefore;
    if (isSecondPass) return false;
    // What falls into the gap occurs once, at its end.
    const firstWall = at === changedAt ? at + offsetBefore : at + offsetAfter;
    for (let wall = firstWall; wall <= at + offsetAfter; wall += 1_000) {
      if (matches(rule, wall)) return true;
    }
    return false;
  }
}

function matches(rule: Rule, wallMs: number): boolean {
  const seconds = Math.floor(wallMs / 1_000);
  return rule(Math.floor(seconds / 3_600) % 24, Math.floor(seconds / 60) % 60, seconds % 60);
}

/** Sets the clock of the world to shortly before a clock change of some zone. */
export function nearClockChange(world: Simulation): Calendar {
  const changed = clockChanges[world.between([0, clockChanges.length - 1])]!;
  world.jumpClock(changed.at - world.between([10_000, 150_000]) - world.clock.now());
  return new Calendar(changed);
}
