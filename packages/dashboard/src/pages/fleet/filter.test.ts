import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import {
  boardCards,
  earlierAttempts,
  filterSessions,
  isIn,
  statusGroups,
  type StatusGroup,
} from './filter.js';

type Session = DaemonSchema<'Session'>;

const session = (name: string, status: Session['status'], part: Partial<Session> = {}): Session =>
  ({ id: name, name, status, backend: 'claude', tags: [], ...part }) as Session;

const all = [
  session('Retry upload', 'working', { branch: 'retry-upload', tags: ['web'] }),
  session('Docs', 'waiting_for_input', { repo: '/src/Mill' }),
  session('Bench', 'rate_limited', { model: 'opus' }),
  session('Old', 'done'),
];
const names = (text: string, group: Parameters<typeof filterSessions>[2] = 'all') =>
  filterSessions(all, text, group).map(({ name }) => name);

test('filterSessions: every word must match, case-insensitively', () => {
  expect(names('UPLOAD web')).toEqual(['Retry upload']);
  expect(names('mill')).toEqual(['Docs']);
  expect(names('upload mill')).toEqual([]);
  expect(names('  ')).toHaveLength(4);
});

test('filterSessions: an id is found by its start, and not by digits within', () => {
  const ids = ['01JQ7770000000000000000000', '01JR0000000000000000000000'];
  const list = ids.map((id) => session('agent', 'done', { id }));
  const found = (text: string) => filterSessions(list, text, 'all').map(({ id }) => id);
  expect(found('01jq777')).toEqual([ids[0]]);
  expect(found('agent 01JR')).toEqual([ids[1]]);
  expect(found('777')).toEqual([]);
});

test('filterSessions: attention contains waiting and failed agents', () => {
  expect(names('', 'attention')).toEqual(['Docs', 'Bench']);
  expect(names('opus', 'attention')).toEqual(['Bench']);
});

test('statusGroups: every status is in exactly one group besides all', () => {
  const statuses: Session['status'][] = [
    'spawning',
    'working',
    'waiting_for_input',
    'idle',
    'done',
    'errored',
    'orphaned',
    'rate_limited',
  ];
  for (const status of statuses) {
    const groups = Object.keys(statusGroups).filter(
      (id) => id !== 'all' && isIn(id as StatusGroup, status),
    );
    expect([status, groups.length]).toEqual([status, 1]);
  }
});

test('board: retries of a queue task are one card, in the column of the newest attempt', () => {
  const attempt = (n: number, status: Session['status']) =>
    session('Retry upload', status, { id: `01A${n}`, task: { id: 't1', queue: 'q', attempt: n } });
  const [first, second, third] = [
    attempt(1, 'errored'),
    attempt(2, 'errored'),
    attempt(3, 'working'),
  ];
  const plain = session('Docs', 'working', { id: '01B0' });
  const columns = [
    { name: 'working' as const, sessions: [plain, third!] },
    { name: 'needs_you' as const, sessions: [second!, first!] },
  ];
  const cards = boardCards(columns, '').map(({ sessions }) => sessions.map(({ id }) => id));
  expect(cards).toEqual([['01B0', '01A3'], []]);
  const earlierOf = earlierAttempts([third!, second!, first!, plain]);
  expect(earlierOf(third!).map(({ task }) => task!.attempt)).toEqual([1, 2]);
  expect(earlierOf(plain)).toEqual([]);
  // The table has one row too.
  expect(filterSessions([plain, third!, second!, first!], '', 'all')).toEqual([plain, third]);
});
