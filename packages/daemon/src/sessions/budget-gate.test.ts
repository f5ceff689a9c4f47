import { expect, test } from 'vitest';
import { BudgetGate, type BudgetParts } from './spawner.js';

type Rollup = Awaited<ReturnType<BudgetParts['readSpend']>>;

function gateAt(
  figures: { daily: number; weekly?: number; agents?: Record<string, number> },
  { daily = 10, weekly = 0, isOn = true, sessions = [] as object[] } = {},
): BudgetGate {
  const by_agent = Object.entries(figures.agents ?? {}).map(([key, usd]) => ({ key, usd }));
  const rollup = { daily_usd: figures.daily, weekly_usd: figures.weekly ?? 0, by_agent };
  return new BudgetGate({
    settings: settingsWith({
      budget_gate: isOn,
      budget_daily_usd: daily,
      budget_weekly_usd: weekly,
    }),
    readSpend: () => Promise.resolve(rollup as unknown as Rollup),
    store: { all: () => sessions.map((session) => ({ session })) as never },
  });
}

function settingsWith(
  tokens: Partial<BudgetParts['settings']['values']['tokens']>,
): BudgetParts['settings'] {
  const caps = { budget_gate: true, budget_daily_usd: 10, budget_weekly_usd: 0 };
  const basis = { budget_basis: 'greater' as const, assumed_session_usd: 0.5 };
  return { values: { tokens: { ...caps, ...basis, ...tokens } } };
}

const never = () => new Promise<void>(() => {});
const pass = (gate: BudgetGate, isForced = false) =>
  gate.pass(isForced, () => Promise.resolve('passed'));

test('at a cap it asks, with the figures, and force goes on', async () => {
  const gate = gateAt({ daily: 10 });
  await expect(pass(gate)).rejects.toMatchObject({
    code: 'BUDGET_CONFIRMATION_REQUIRED',
    detail: expect.stringContaining('$10.00 of $10.00 today') as string,
    extra: {
      members: {
        confirmation_required: true,
        gate: 'budget',
        verdict: { over: true, daily_usd: 10, cap_daily: 10, weekly_usd: 0, cap_weekly: 0 },
      },
    },
  });
  expect(await pass(gate, true)).toBe('passed');
});

test.each([
  ['greater', 4, 12, false],
  ['greater', 12, 4, false],
  ['contract', 4, 12, true],
  ['exact', 12, 4, true],
  ['exact', 12, null, false],
] as const)('basis %s: $%d by family and $%s exact', async (basis, usd, exact, passes) => {
  const rollup = { daily_usd: usd, daily_exact_usd: exact, weekly_usd: 0, by_agent: [] };
  const gate = new BudgetGate({
    settings: settingsWith({ budget_basis: basis }),
    readSpend: () => Promise.resolve(rollup as unknown as Rollup),
    store: { all: () => [] },
  });
  if (passes) expect(await pass(gate)).toBe('passed');
  else await expect(pass(gate)).rejects.toMatchObject({ code: 'BUDGET_CONFIRMATION_REQUIRED' });
});

test('below the caps, without a cap and without the gate all pass', async () => {
  expect(await pass(gateAt({ daily: 9.99 }))).toBe('passed');
  expect(await pass(gateAt({ daily: 99 }, { daily: 0 }))).toBe('passed');
  expect(await pass(gateAt({ daily: 99 }, { isOn: false }))).toBe('passed');
});

test('what was let in and has not spent yet counts as much as agents cost on average', async () => {
  const gate = gateAt({ daily: 9, agents: { a: 2, b: 4 } });
  void gate.pass(false, never);
  await expect(pass(gate)).rejects.toMatchObject({ code: 'BUDGET_CONFIRMATION_REQUIRED' });
});

test('who is in the store counts until the figures show it or it has ended', async () => {
  const agents = { a: 2 };
  const waiting = { status: 'working', pid: 1, backend_session_id: 'x' };
  const figures = { daily: 9, agents };
  await expect(pass(gateAt(figures, { sessions: [waiting] }))).rejects.toThrow();
  const counted = { ...waiting, backend_session_id: 'a' };
  expect(await pass(gateAt(figures, { sessions: [counted] }))).toBe('passed');
  const over = { ...waiting, status: 'done', pid: null };
  expect(await pass(gateAt(figures, { sessions: [over] }))).toBe('passed');
});

test('budget gate: on a fresh system running sessions count at the assumed cost', async () => {
  const gate = gateAt({ daily: 0 }, { daily: 1 });
  const refused: unknown[] = [];
  for (let n = 0; n < 50; n++) gate.pass(false, never).catch((error) => refused.push(error));
  await expect(pass(gate)).rejects.toMatchObject({ code: 'BUDGET_CONFIRMATION_REQUIRED' });
  expect(refused).toHaveLength(48);
  const running = { status: 'working', pid: 7, backend_session_id: 'a' };
  await expect(
    pass(gateAt({ daily: 0 }, { daily: 1, sessions: [running, running] })),
  ).rejects.toMatchObject({ code: 'BUDGET_CONFIRMATION_REQUIRED' });
  expect(await pass(gateAt({ daily: 0 }, { daily: 1, sessions: [running] }))).toBe('passed');
});
