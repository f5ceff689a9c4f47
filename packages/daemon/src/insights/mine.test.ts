import { expect, test } from 'vitest';
import { withMessage, type SessionHistory } from '../spend/session-history.js';
import { mineInsights } from './insights.js';
import type { Session } from './own-sessions.js';

const minute = 60_000;
const start = Date.parse('2026-01-15T09:00:00Z');
const now = start + 30 * 86_400_000;
const options = { since: undefined, now, hourOf: (time: number) => new Date(time).getUTCHours() };

/** A session at work from one minute to another. */
function session(id: string, from: number, to: number, part: Partial<Session> = {}): Session {
  const [firstAt, lastAt] = [start + from * minute, start + to * minute];
  return {
    id,
    backend: 'claude',
    model: 'opus',
    repo: '/mill',
    firstAt,
    lastAt,
    endsInFailure: false,
    files: [],
    stretches: [{ from: firstAt, to: lastAt }],
    ...part,
  };
}

test('without history there is nothing to tell, and nothing is made up', () => {
  expect(mineInsights([], options)).toEqual({
    since: null,
    generated_at: new Date(now).toISOString(),
    sessions: 0,
    durations: {
      overall: { key: 'all', sessions: 0, p50_ms: null, p90_ms: null, max_ms: null, total_ms: 0 },
      by_backend: [],
      by_repo: [],
    },
    busiest_hours: [],
    error_rates: [{ by: 'all', key: 'all', sessions: 0, errors: 0, rate: null }],
    co_edited_files: [],
    parallel_candidates: [],
  });
});

test('durations are those of sessions that have ended, by backend and repository', () => {
  const sessions = [
    ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((length) => session(`s${length}`, 0, length)),
    session('other', 0, 60, { backend: 'codex', repo: '/race' }),
    session('at work', 0, 0, { firstAt: now - minute, lastAt: now }),
  ];
  const { durations, sessions: sessionCount } = mineInsights(sessions, options);
  expect(sessionCount).toBe(12);
  expect(durations.overall).toMatchObject({
    sessions: 11,
    p50_ms: 6 * minute,
    max_ms: 60 * minute,
  });
  expect(durations.by_backend).toMatchObject([
    { key: 'codex', sessions: 1, p50_ms: 60 * minute },
    { key: 'claude', sessions: 10, p50_ms: 5 * minute, p90_ms: 9 * minute, total_ms: 55 * minute },
  ]);
  expect(durations.by_repo.map(({ key }) => key)).toEqual(['/race', '/mill']);
});

test('hours are summed over all days, the busiest first', () => {
  const day = 24 * 60;
  const { busiest_hours } = mineInsights(
    [session('a', 0, 10), session('b', day, day + 20), session('c', 60, 75)],
    options,
  );
  expect(busiest_hours).toEqual([
    { hour: 9, sessions: 2, busy_ms: 30 * minute },
    { hour: 10, sessions: 1, busy_ms: 15 * minute },
  ]);
});

test('the row for everything comes first, then the highest rates', () => {
  const failed = { endsInFailure: true };
  const { error_rates } = mineInsights(
    [session('a', 0, 1, { ...failed, model: 'haiku' }), session('b', 0, 1), session('c', 0, 1)],
    options,
  );
  expect(error_rates[0]).toEqual({ by: 'all', key: 'all', sessions: 3, errors: 1, rate: 1 / 3 });
  expect(error_rates.slice(1).map(({ by, key, rate }) => [by, key, rate])).toEqual([
    ['model', 'haiku', 1],
    ['backend', 'claude', 1 / 3],
    ['repo', '/mill', 1 / 3],
    ['model', 'opus', 0],
  ]);
});

test('co-edited files: pairs edited by two sessions are listed with their share', () => {
  const edits = (id: string, files: string[]) => session(id, 0, 1, { files });
  const { co_edited_files } = mineInsights(
    [
      edits('a', ['a.ts', 'b.ts', 'c.ts']),
      edits('b', ['a.ts', 'b.ts']),
      edits('c', ['a.ts']),
      session('d', 0, 1, { repo: '/race', files: ['a.ts', 'c.ts'] }),
    ],
    options,
  );
  expect(co_edited_files).toEqual([
    { repo: '/mill', files: ['a.ts', 'b.ts'], sessions: 2, share: 2 / 3 },
  ]);
});

test('neighbours without a file in common could have run side by side', () => {
  const at = (id: string, from: number, to: number, files: string[], repo = '/mill') =>
    session(id, from, to, { files, repo });
  const { parallel_candidates } = mineInsights(
    [
      at('first', 0, 30, ['a.ts']),
      at('second', 40, 50, ['b.ts']),
      at('third', 55, 70, ['b.ts', 'c.ts']),
      at('overlaps', 60, 90, ['d.ts']),
      at('elsewhere', 95, 99, ['e.ts'], '/race'),
      at('much later', 9_000, 9_010, ['f.ts']),
      at('edits nothing', 9_020, 9_030, []),
    ],
    options,
  );
  expect(parallel_candidates).toEqual([
    {
      repo: '/mill',
      first_id: 'first',
      first_name: 'first',
      second_id: 'second',
      second_name: 'second',
      saved_ms: 10 * minute,
      reason: 'they have no edited file in common',
    },
  ]);
});

test('since leaves out the sessions that began before', () => {
  const since = start + 5 * minute;
  const insights = mineInsights([session('a', 0, 9), session('b', 5, 9)], { ...options, since });
  expect(insights).toMatchObject({ since: new Date(since).toISOString(), sessions: 1 });
});

test('session: messages may come in any order, and files are paths inside the repository', () => {
  const base = { backend: 'claude', agent: 's', cwd: '/mill', repo: '/mill', rank: 0 as const };
  const place = (model: string) => ({ ...base, model });
  const messages = [
    { at: 10, place: place('opus'), files: ['/mill/src/a.ts', '/etc/passwd'], isFailure: false },
    { at: 30, place: place('unknown'), files: [], isFailure: true },
    { at: 20, place: place('haiku'), files: ['docs/b.md', '/mill/src/a.ts'], isFailure: false },
  ];
  const sessionOf = (list: typeof messages) =>
    list.reduce<SessionHistory | undefined>((before, each) => withMessage(before, each), undefined);
  const mined = sessionOf([...messages, ...messages]);
  expect(mined).toMatchObject({
    firstAt: 10,
    lastAt: 30,
    endsInFailure: true,
    files: ['docs/b.md', 'src/a.ts'],
  });
  expect(sessionOf(messages.toReversed())).toMatchObject({
    endsInFailure: true,
    files: mined!.files,
  });
});
