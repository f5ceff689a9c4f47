import { expect, test } from 'vitest';
import { firstTrouble, judge, stateText, type Observed } from './server-states.js';

const server = (more: object = {}) => ({
  state: 'live' as const,
  answered_ms_ago: 3,
  latency_ms: 3,
  detail: null,
  ...more,
});
const seen = (queue: object, more: Partial<Observed> = {}): Observed => ({
  since: 0,
  answer: { at: 10_000, body: { queue: server(queue), database: server() } },
  isUnreachable: false,
  ...more,
});

test('judge: everything that answers is live', () => {
  const servers = judge(seen({}), 10_500);
  expect(Object.values(servers).map(stateText)).toEqual(['live', 'live', 'live']);
  expect(firstTrouble(servers)).toBeUndefined();
});

test('judge: a frozen queue server has an age that grows', () => {
  const frozen = seen({ state: 'no_answer', answered_ms_ago: 8_000 });
  expect(stateText(judge(frozen, 11_000).queue)).toBe('no answer, data 9 s old');
  expect(firstTrouble(judge(frozen, 11_000))).toBe('queue');
});

test('judge: a frozen daemon is never live, and nothing behind it either', () => {
  const servers = judge(seen({}), 12_000);
  expect(stateText(servers.daemon)).toBe('no answer, data 2 s old');
  expect([servers.queue.state, servers.database.state]).toEqual(['unknown', 'unknown']);
  expect(firstTrouble(servers)).toBe('daemon');
});

test('judge: silence is counted from when the page was shown again', () => {
  expect(judge(seen({}, { since: 11_500 }), 12_000).daemon.state).toBe('live');
});

test('judge: nothing is known before the first answer, for two seconds', () => {
  const fresh: Observed = { since: 0, answer: undefined, isUnreachable: false };
  expect(judge(fresh, 1_000).daemon.state).toBe('unknown');
  expect(judge(fresh, 2_000).daemon.state).toBe('no_answer');
});

test('firstTrouble: a server that never ran here is not missed', () => {
  const down = { state: 'down', latency_ms: null, detail: 'is not running' };
  expect(firstTrouble(judge(seen({ ...down, answered_ms_ago: null }), 10_000))).toBeUndefined();
  expect(firstTrouble(judge(seen({ ...down, answered_ms_ago: 400 }), 10_000))).toBe('queue');
  expect(firstTrouble(judge(seen({}, { isUnreachable: true }), 10_000))).toBe('daemon');
});
