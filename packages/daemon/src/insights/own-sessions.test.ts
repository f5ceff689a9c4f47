import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import { mineInsights } from './insights.js';
import { withOwnSessions, workOf, type Session } from './own-sessions.js';

const minute = 60_000;
const start = Date.parse('2026-01-15T09:50:00Z');
const now = start + 30 * minute;
const options = { since: undefined, now, hourOf: (time: number) => new Date(time).getUTCHours() };

/** A session that the daemon started, with what insights look at. */
function own(id: string, part: Partial<DaemonSchema<'Session'>> = {}): DaemonSchema<'Session'> {
  return {
    id,
    name: `name of ${id}`,
    status: 'done',
    backend: 'goose',
    backend_session_id: null,
    model: null,
    driver: 'headless',
    repo: '/mill',
    workdir: '/mill',
    pid: null,
    created_at: new Date(start).toISOString(),
    status_since: new Date(start + 20 * minute).toISOString(),
    ...part,
  } as DaemonSchema<'Session'>;
}

const transcript: Session = {
  id: 'chat',
  backend: 'claude',
  model: 'opus',
  repo: '/mill',
  firstAt: start,
  lastAt: start + 5 * minute,
  endsInFailure: false,
  files: ['a.ts'],
  stretches: [{ from: start, to: start + 5 * minute }],
};

test('runs of command lines without a transcript count as soon as they have ended', () => {
  const sessions = withOwnSessions(
    [],
    [own('a'), own('b', { status: 'errored' }), own('c', { status: 'working', pid: 7 })],
    now,
  );
  expect(mineInsights(sessions, options)).toMatchObject({
    sessions: 3,
    durations: {
      overall: { sessions: 2, p50_ms: 20 * minute },
      by_backend: [{ key: 'goose', sessions: 2 }],
      by_repo: [{ key: '/mill', sessions: 2 }],
    },
    // From 9:50 to 10:10, and the one at work to 10:20.
    busiest_hours: [
      { hour: 10, sessions: 3, busy_ms: 40 * minute },
      { hour: 9, sessions: 3, busy_ms: 30 * minute },
    ],
    error_rates: [{ by: 'all', sessions: 2, errors: 1, rate: 0.5 }, {}, {}, {}],
  });
});

test('a headless session was at work from its start to its end, however few its messages', () => {
  const once = { ...transcript, lastAt: start, stretches: [], repo: '/mill-worktrees/gone' };
  const chat = { backend: 'claude', backend_session_id: 'chat' };
  const [session] = withOwnSessions([once], [own('x', chat)], now);
  expect(session).toMatchObject({ repo: '/mill', firstAt: start, lastAt: start + 20 * minute });
  expect(mineInsights([session!], options)).toMatchObject({
    durations: { overall: { total_ms: 20 * minute }, by_repo: [{ key: '/mill' }] },
  });
  // It was resumed elsewhere, after its end here.
  const later = { from: start + 15 * minute, to: start + 25 * minute };
  const resumed = { ...once, lastAt: later.to, stretches: [later] };
  const [longer] = withOwnSessions([resumed], [own('x', chat)], now);
  expect([longer!.lastAt, workOf(longer!)]).toEqual([later.to, 25 * minute]);
  // Between its starts it waited, for an unknown time.
  const [restarted] = withOwnSessions([transcript], [own('x', { ...chat, restart_count: 1 })], now);
  expect(workOf(restarted!)).toBe(5 * minute);
});

test('a session with a transcript is one session: its work from there, its end from here', () => {
  const [session, ...more] = withOwnSessions(
    [transcript],
    [
      own('x', {
        backend: 'claude',
        backend_session_id: 'chat',
        status: 'errored',
        driver: 'tmux',
      }),
    ],
    now,
  );
  expect(more).toEqual([]);
  expect(session).toEqual({
    ...transcript,
    id: 'x',
    name: 'name of x',
    hasEnded: true,
    endsInFailure: true,
  });
});

test('another backend with the same id is another session, and none is not one', () => {
  const others = [own('x', { backend_session_id: 'chat' }), own('y')];
  expect(withOwnSessions([transcript], others, now)).toHaveLength(3);
});

test('how long a conversation was at work is unknown, not how it ended', () => {
  const sessions = withOwnSessions([], [own('x', { driver: 'tmux', status: 'orphaned' })], now);
  expect(mineInsights(sessions, options)).toMatchObject({
    sessions: 1,
    durations: { overall: { sessions: 0, p50_ms: null }, by_backend: [] },
    busiest_hours: [],
    error_rates: [{ by: 'all', sessions: 1, errors: 1 }, {}, {}, {}],
  });
});
