import { expect, test } from 'vitest';
import { budgetVerdict } from './budget.js';

const caps = { isOn: true, dailyUsd: 20, weeklyUsd: 100 };
const spent = { dailyUsd: 5, weeklyUsd: 30 };

test('below the caps nothing is over', () => {
  expect(budgetVerdict({ dailyUsd: 19.99, weeklyUsd: 99.99 }, caps)).toEqual({
    over: false,
    daily_usd: 19.99,
    weekly_usd: 99.99,
    cap_daily: 20,
    cap_weekly: 100,
    reason: 'no cap is reached',
  });
});

test('a cap that is reached is over, and the reason names it', () => {
  const daily = budgetVerdict({ dailyUsd: 20, weeklyUsd: 30 }, caps);
  expect(daily).toMatchObject({ over: true, reason: "today's spend has reached the daily cap" });
  const weekly = budgetVerdict({ dailyUsd: 5, weeklyUsd: 100 }, caps);
  expect(weekly.reason).toBe('the spend of the last 7 days has reached the weekly cap');
  const both = budgetVerdict({ dailyUsd: 20, weeklyUsd: 100 }, caps);
  expect(both.reason).toContain('daily cap, and the spend of the last 7 days');
});

test('0 is no cap, and a gate that is off asks for nothing', () => {
  const much = { dailyUsd: 1e6, weeklyUsd: 1e6 };
  expect(budgetVerdict(much, { ...caps, dailyUsd: 0, weeklyUsd: 0 }).over).toBe(false);
  expect(budgetVerdict(much, { ...caps, dailyUsd: 0 })).toMatchObject({ over: true });
  expect(budgetVerdict(much, { ...caps, isOn: false }).over).toBe(false);
  // Nothing spent is not over a cap that is not there.
  expect(budgetVerdict({ dailyUsd: 0, weeklyUsd: 0 }, { ...caps, dailyUsd: 0 }).over).toBe(false);
});

test('what is promised counts, and the figures stay those that were measured', () => {
  const promised = [{ usd: 10 }, { usd: 4.5 }];
  expect(budgetVerdict(spent, caps, promised).over).toBe(false);
  const verdict = budgetVerdict(spent, caps, [...promised, { usd: 0.5 }]);
  expect(verdict).toMatchObject({ over: true, daily_usd: 5, weekly_usd: 30 });
  expect(verdict.reason).toBe(
    "today's spend, including the expected cost of running sessions, has reached the daily cap",
  );
});
