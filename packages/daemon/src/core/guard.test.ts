import type { DaemonSchema } from '@millrace/contract/daemon';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  compactCooldownMs,
  compactGraceMs,
  contextState,
  firstGuardState,
  guardStep,
  guardWakesAt,
  interruptLimitMs,
  isForced,
  thresholdsFor,
  type GuardAction,
  type GuardRules,
  type GuardState,
  type Observation,
} from './guard.js';

const rules: GuardRules = { warn: 200, critical: 400, alerts: true, autoCompact: true };

/** Feeds one observation after the other, and keeps what was decided. */
class Run {
  state: GuardState = firstGuardState;
  readonly log: { action: GuardAction; seen: Observation }[] = [];
  #last: Observation = {
    now: 1_000_000_000,
    status: 'working',
    statusSince: 1_000_000_000,
    tokens: null,
    canSteer: true,
    force: false,
    isLatest: true,
  };

  constructor(
    private readonly rules: GuardRules,
    always: Partial<Observation> = {},
  ) {
    this.#last = { ...this.#last, ...always };
  }

  /** What is done now, when the agent is like this. */
  see(change: Partial<Observation>, afterMs = 1000): string[] {
    const now = this.#last.now + afterMs;
    const isMoved = change.status !== undefined && change.status !== this.#last.status;
    const seen = { ...this.#last, now, ...(isMoved && { statusSince: now }), ...change };
    this.#last = seen;
    // What is stored between two steps is JSON.
    const before = JSON.parse(JSON.stringify(this.state)) as GuardState;
    const { state, actions } = guardStep(before, seen, this.rules);
    this.state = state;
    this.log.push(...actions.map((action) => ({ action, seen })));
    return actions.map((action) => ('level' in action ? action.level : action.kind));
  }

  times(kind: GuardAction['kind']): number[] {
    return this.log.filter(({ action }) => action.kind === kind).map(({ seen }) => seen.now);
  }
}

test('thresholds: the lower limit wins where the window is known', () => {
  const limits = { warn: 200_000, critical: 400_000, warn_pct: 50, critical_pct: 90 };
  expect(thresholdsFor(limits, 258_000)).toEqual({ warn: 129_000, critical: 232_200 });
  expect(thresholdsFor(limits, 1_000_000)).toEqual({ warn: 200_000, critical: 400_000 });
  expect(thresholdsFor(limits, null)).toEqual({ warn: 200_000, critical: 400_000 });
  const absolute = { warn: 200_000, critical: 400_000 };
  expect(thresholdsFor({ ...absolute, warn_pct: 0, critical_pct: 0 }, 1_000)).toEqual(absolute);
});

test('whoever is at a threshold has reached it', () => {
  const stateOf = (tokens: number | null) => contextState(tokens, rules);
  expect([null, 0, 199, 200, 399, 400, 1e9].map(stateOf)).toEqual([
    null,
    'ok',
    'ok',
    'warning',
    'warning',
    'critical',
    'critical',
  ]);
  expect(contextState(5, { warn: 10, critical: 5 })).toBe('critical');
});

test('an override counts more than the setting', () => {
  const all = (['on', 'off', 'inherit'] as const).map((choice) => [
    isForced(choice, false),
    isForced(choice, true),
  ]);
  expect(all).toEqual([
    [true, true],
    [false, false],
    [false, true],
  ]);
});

describe('alerts', () => {
  test('come once for each upward crossing, and again after it went down', () => {
    const run = new Run(rules);
    const alerts = [100, 200, 250, 200, 400, 900, 400, 399, 400, 199, 250].map((tokens) =>
      run.see({ tokens }),
    );
    expect(alerts.map(([level]) => level)).toEqual([
      undefined,
      'warning',
      undefined,
      undefined,
      'critical',
      undefined,
      undefined,
      undefined,
      'critical',
      undefined,
      'warning',
    ]);
  });

  test('tell both crossings of a leap', () => {
    expect(new Run(rules).see({ tokens: 450 })).toEqual(['warning', 'critical']);
  });

  test('are numbered', () => {
    const run = new Run(rules);
    for (const tokens of [450, 0, 450]) run.see({ tokens });
    const numbers = run.log.map(({ action }) => 'crossing' in action && action.crossing);
    expect(numbers).toEqual([1, 2, 3, 4]);
  });

  test('are not made of what is unknown', () => {
    const run = new Run(rules);
    expect([250, null, 250].map((tokens) => run.see({ tokens }))).toEqual([['warning'], [], []]);
  });

  test('can be off, and what was crossed meanwhile is not told later', () => {
    const run = new Run({ ...rules, alerts: false });
    expect(run.see({ tokens: 450 })).toEqual([]);
    expect(run.state).toMatchObject({ level: 'critical', crossings: 2 });
  });

  test('are raised for outdated snapshots, which cause no actions', () => {
    const run = new Run(rules);
    const alerts = run.see({ tokens: 450, status: 'idle', isLatest: false });
    expect(alerts).toEqual(['warning', 'critical']);
    expect(run.see({ tokens: 100, isLatest: true })).toEqual([]);
  });
});

describe('an idle agent', () => {
  test('that is critical compacts, once within the cooldown', () => {
    const run = new Run({ ...rules, alerts: false });
    expect(run.see({ tokens: 450, status: 'idle' })).toEqual(['compact']);
    expect(run.see({ status: 'working' })).toEqual([]);
    expect(run.see({ status: 'idle', tokens: 440 }, 10_000)).toEqual(['saved']);
    expect(run.see({}, compactCooldownMs - 12_000)).toEqual([]);
    expect(run.see({}, 1_000)).toEqual(['compact']);
  });

  test('is not compacted again on the strength of the same figure', () => {
    const run = new Run({ ...rules, alerts: false });
    run.see({ tokens: 450, status: 'idle' });
    run.see({ status: 'working' });
    expect(run.see({ status: 'idle' })).toEqual([]);
    expect(run.see({}, 10 * compactCooldownMs)).toEqual([]);
    expect(run.see({ tokens: 451 })).toEqual(['compact']);
  });

  test('is left alone when auto_compact is off, also when it could be forced', () => {
    const run = new Run({ ...rules, alerts: false, autoCompact: false }, { force: true });
    expect(run.see({ tokens: 450, status: 'idle' })).toEqual([]);
  });
});

describe('a busy agent', () => {
  const forced = () => new Run({ ...rules, alerts: false }, { force: true });

  test('is interrupted, compacted once idle, and told to go on once idle again', () => {
    const run = forced();
    expect(run.see({ tokens: 450 })).toEqual(['interrupt']);
    expect(run.see({}, 10_000)).toEqual([]);
    expect(run.see({ status: 'idle' })).toEqual(['compact']);
    expect(run.see({ status: 'working' })).toEqual([]);
    expect(run.see({ status: 'idle', tokens: 50 })).toEqual(['saved', 'resume']);
    expect(run.see({ status: 'working', tokens: 60 })).toEqual([]);
  });

  test('is left alone without force', () => {
    const run = new Run({ ...rules, alerts: false });
    expect(run.see({ tokens: 450 })).toEqual([]);
    expect(run.see({ force: true })).toEqual(['interrupt']);
  });

  test('that cannot be interrupted in time is asked when it is next idle', () => {
    const run = forced();
    run.see({ tokens: 450 });
    expect(run.see({}, interruptLimitMs - 1)).toEqual([]);
    expect(run.see({}, 1)).toEqual(['abandon']);
    expect(run.see({}, 10 * compactCooldownMs)).toEqual([]);
    expect(run.see({ status: 'idle' })).toEqual(['compact']);
    expect(run.see({ status: 'working' })).toEqual([]);
    // A size of 0 is no size: it books no saving, and the wait goes on.
    expect(run.see({ status: 'idle', tokens: 0 })).toEqual([]);
    expect(run.see({ status: 'idle', tokens: 50 })).toEqual(['saved']);
  });

  test('is asked no more when its context has become smaller by itself', () => {
    const run = forced();
    run.see({ tokens: 450 });
    run.see({}, interruptLimitMs);
    run.see({ tokens: 100 });
    expect(run.see({ status: 'idle' })).toEqual([]);
  });

  test('whose context is small again when the interrupt takes is only told to go on', () => {
    const run = forced();
    run.see({ tokens: 450 });
    run.see({ tokens: 100 });
    expect(run.see({ status: 'idle' })).toEqual(['resume']);
  });

  test('at a question is not interrupted: Escape would answer it', () => {
    expect(forced().see({ tokens: 450, status: 'waiting_for_input' })).toEqual([]);
  });

  test('goes on after a command that left no trace', () => {
    const run = forced();
    run.see({ tokens: 450 });
    run.see({ status: 'idle' });
    expect(run.see({}, compactGraceMs - 1)).toEqual([]);
    expect(run.see({}, 1)).toEqual(['resume']);
  });

  test('whose compaction was too quick to be seen goes on as well', () => {
    const run = forced();
    run.see({ tokens: 450 });
    run.see({ status: 'idle' });
    const statusSince = run.log.at(-1)!.seen.now + 500;
    expect(run.see({ statusSince })).toEqual(['resume']);
  });

  test.each(['done', 'errored', 'orphaned', 'spawning'] as const)(
    'that is %s needs nothing more',
    (status) => {
      const run = forced();
      run.see({ tokens: 450 });
      run.see({ status });
      expect(run.see({ status: 'idle', tokens: 450 })).toEqual(['compact']);
      run.see({ status });
      expect(run.see({ status: 'idle', tokens: 450 })).toEqual([]);
    },
  );
});

test('a clock that is set back does not make the cooldown longer', () => {
  const run = new Run({ ...rules, alerts: false });
  run.see({ tokens: 450, status: 'idle' });
  run.see({ tokens: 460, status: 'working' }, -3_600_000);
  expect(run.see({ status: 'idle' }, compactCooldownMs - 1)).toEqual([]);
  expect(run.see({ tokens: 470 }, 1)).toEqual(['compact']);
});

test('a clock that is set back while an agent is asked lets it ask later, not at once', () => {
  const run = new Run({ ...rules, alerts: false }, { force: true });
  run.see({ tokens: 450, status: 'idle' });
  run.see({ status: 'working' });
  expect(run.see({ tokens: 460 }, compactCooldownMs)).toEqual([]);
  expect(run.see({ status: 'idle' })).toEqual(['compact']);
  run.see({ status: 'working' });
  run.see({ status: 'idle' });
  expect(run.see({ tokens: 470, status: 'working' }, compactCooldownMs)).toEqual(['interrupt']);
  expect(run.see({}, interruptLimitMs)).toEqual(['abandon']);
  run.see({}, -3_600_000);
  expect(run.see({ status: 'idle' }, compactCooldownMs - 1)).toEqual([]);
  expect(run.see({}, 1)).toEqual(['compact']);
});

test('guard: the time of the next check is known', () => {
  const run = new Run({ ...rules, alerts: false }, { force: true });
  const now = () => run.log.at(-1)!.seen.now;
  expect(guardWakesAt(run.state)).toBe(undefined);
  run.see({ tokens: 450 });
  expect(guardWakesAt(run.state)).toBe(now() + interruptLimitMs);
  run.see({ status: 'idle' });
  const sentAt = now();
  expect(guardWakesAt(run.state)).toBe(sentAt + compactGraceMs);
  run.see({ status: 'working' });
  run.see({ status: 'idle', tokens: 50 });
  expect(guardWakesAt(run.state)).toBe(sentAt + compactCooldownMs);
});

const statuses: DaemonSchema<'SessionStatus'>[] = [
  'spawning',
  'working',
  'working',
  'working',
  'waiting_for_input',
  'idle',
  'idle',
  'idle',
  'done',
  'errored',
  'rate_limited',
];

const anyStep = fc.record({
  status: fc.constantFrom(...statuses),
  tokens: fc.option(fc.constantFrom(0, 100, 199, 200, 250, 399, 400, 401, 450, 500), { freq: 8 }),
  force: fc.boolean(),
  canSteer: fc.constantFrom(true, true, true, true, true, false),
  isLatest: fc.constantFrom(true, true, true, true, false),
  afterMs: fc.constantFrom(1, 500, 20_000, 30_000, 44_999, 45_000, 120_000, 300_000, 900_000),
});

test('whatever happens, the table of the contract holds', () => {
  let seenKinds = new Set<string>();
  fc.assert(
    fc.property(
      fc.array(anyStep, { minLength: 1, maxLength: 80 }),
      fc.boolean(),
      fc.boolean(),
      (steps, alerts, autoCompact) => {
        const run = new Run({ ...rules, alerts, autoCompact });
        for (const { afterMs, ...step } of steps) run.see(step, afterMs);
        seenKinds = new Set([...seenKinds, ...run.log.map(({ action }) => action.kind)]);
        expectTable(run, { alerts, autoCompact });
        expect(alertsOf(run)).toEqual(alerts ? crossingsIn(steps.map(({ tokens }) => tokens)) : []);
      },
    ),
    { numRuns: 2000 },
  );
  // The steps above lead everywhere, else this would say little.
  expect([...seenKinds].sort()).toEqual(
    ['abandon', 'alert', 'compact', 'interrupt', 'resume', 'saved'].sort(),
  );
});

function expectTable(run: Run, { alerts, autoCompact }: { alerts: boolean; autoCompact: boolean }) {
  const compacts = run.times('compact');
  for (const [index, at] of compacts.slice(1).entries()) {
    expect(at - compacts[index]!).toBeGreaterThanOrEqual(compactCooldownMs);
  }
  let interruptedAt: number | undefined;
  let isNudging = false;
  let mayResume = false;
  for (const { action, seen } of run.log) {
    if (action.kind === 'alert') {
      expect(alerts).toBe(true);
      continue;
    }
    if (action.kind === 'saved') {
      expect(action.tokensAfter).toBeLessThan(action.tokensBefore);
      continue;
    }
    expect(seen).toMatchObject({ canSteer: true, isLatest: true });
    switch (action.kind) {
      case 'interrupt':
        expect(seen).toMatchObject({ status: 'working', force: true });
        expect(contextState(seen.tokens, rules)).toBe('critical');
        [interruptedAt, isNudging] = [seen.now, false];
        break;
      case 'abandon':
        expect(seen.now - interruptedAt!).toBeGreaterThanOrEqual(interruptLimitMs);
        [interruptedAt, isNudging] = [undefined, true];
        break;
      case 'compact':
        expect(seen.status).toBe('idle');
        expect(['critical', null]).toContain(contextState(seen.tokens, rules));
        expect(autoCompact || interruptedAt !== undefined || isNudging).toBe(true);
        [mayResume, interruptedAt, isNudging] = [interruptedAt !== undefined, undefined, false];
        break;
      case 'resume':
        expect(seen.status).toBe('idle');
        expect(mayResume || interruptedAt !== undefined).toBe(true);
        [mayResume, interruptedAt] = [false, undefined];
        break;
    }
  }
}

function alertsOf(run: Run): string[] {
  return run.log.flatMap(({ action }) => (action.kind === 'alert' ? [action.level] : []));
}

/** Told by thresholds, one at a time: nothing of the machine is asked. */
function crossingsIn(figures: readonly (number | null)[]): string[] {
  const crossings: string[] = [];
  let before = 0;
  for (const tokens of figures) {
    if (tokens === null) continue;
    if (before < rules.warn && tokens >= rules.warn) crossings.push('warning');
    if (before < rules.critical && tokens >= rules.critical) crossings.push('critical');
    before = tokens;
  }
  return crossings;
}
