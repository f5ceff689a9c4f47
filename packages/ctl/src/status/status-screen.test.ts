import { expect, test } from 'vitest';
import { plain } from '../render/paint.js';
import { queueTotals, type Overview } from './overview.js';
import { statusScreen } from './status-screen.js';

const running: Overview = {
  ok: true,
  db: {
    up: true,
    address: 'unix:/home/ada/.local/share/millrace/db/db.sock',
    version: '0.1.0',
    reason: null,
    role: 'leader',
    collections: 3,
    records: 12_400,
    seq: 981,
    followers: 1,
    connectors: null,
  },
  queue: {
    up: true,
    address: 'http://127.0.0.1:8081',
    grpc_address: null,
    version: null,
    reason: null,
    queues: 2,
    totals: {
      pending: 120,
      in_flight: 4,
      dlq_depth: 1,
      oldest_pending_age_ms: 65_000,
      paused: 1,
    },
  },
  daemon: {
    up: true,
    address: 'http://127.0.0.1:8765',
    version: '0.1.0',
    reason: null,
    agents: { working: 2, waiting_for_input: 1 },
  },
};

const absent = (what: string) => ({
  up: false,
  address: null,
  version: null,
  reason: `no ${what} answers at http://127.0.0.1:1 (nothing listens there).`,
});
const nothing: Overview = {
  ok: false,
  db: {
    ...absent('database'),
    role: null,
    collections: null,
    records: null,
    seq: null,
    followers: null,
    connectors: null,
  },
  queue: { ...absent('queue server'), grpc_address: null, queues: null, totals: null },
  daemon: { ...absent('daemon'), address: 'http://127.0.0.1:8765', agents: null },
};

const screen = (overview: Overview, columns: number) =>
  statusScreen(overview, { columns, paint: plain });

test('status: the gRPC address of the queue is below its HTTP address', () => {
  const queue = { ...running.queue, grpc_address: 'grpc://127.0.0.1:8082' };
  const lines = screen({ ...running, queue }, 160).split('\n');
  const at = lines.findIndex((line) => line.startsWith('queue '));
  expect(lines[at + 1]?.trim()).toBe('grpc://127.0.0.1:8082');
  expect(lines[at + 1]?.indexOf('grpc')).toBe(lines[at]?.indexOf('http'));
  expect(lines[at + 2]).toMatch(/^daemon /);
});

test('all three at a glance, at 80 columns', () => {
  expect(screen(running, 80)).toBe(
    `
SERVER    STATE  ADDRESS                     VERSION  DETAILS
database  up     unix:/home/ada/.local/sha…  0.1.0    3 collections with 12.4k
                                                      records, commit 981, 1
                                                      follower
queue     up     http://127.0.0.1:8081       -        2 queues, 120 pending, 4
                                                      in flight, 1 dead, oldest
                                                      pending 1m 5s, 1 paused
daemon    up     http://127.0.0.1:8765       0.1.0    3 agents: 2 working, 1
                                                      waiting_for_input
`.slice(1),
  );
});

test('the same at 140 columns', () => {
  expect(screen(running, 140)).toBe(
    `
SERVER    STATE  ADDRESS                                          VERSION  DETAILS
database  up     unix:/home/ada/.local/share/millrace/db/db.sock  0.1.0    3 collections with 12.4k records, commit 981, 1 follower
queue     up     http://127.0.0.1:8081                            -        2 queues, 120 pending, 4 in flight, 1 dead, oldest pending 1m 5s,
                                                                           1 paused
daemon    up     http://127.0.0.1:8765                            0.1.0    3 agents: 2 working, 1 waiting_for_input
`.slice(1),
  );
});

test('when nothing runs it says why, and how to start everything', () => {
  expect(screen(nothing, 80)).toBe(
    `
SERVER    STATE  ADDRESS                VERSION  DETAILS
database  down   -                      -
queue     down   -                      -
daemon    down   http://127.0.0.1:8765  -
database: no database answers at http://127.0.0.1:1 (nothing listens there).
queue: no queue server answers at http://127.0.0.1:1 (nothing listens there).
daemon: no daemon answers at http://127.0.0.1:1 (nothing listens there).
Start everything with \`ctl up\`.
`.slice(1),
  );
});

test('status: one advice per server that is down, instead of one in each reason', () => {
  const away = 'no queue server answers at http://127.0.0.1:1 (nothing listens there).';
  const advice = ' Start one with `ctl queue serve` or `ctl up`, or name another with --url.';
  const queue = { ...nothing.queue, reason: away + advice };
  expect(screen({ ...running, queue }, 140)).toContain(
    `\nqueue: ${away}\n` +
      'Start the queue with `ctl queue serve` or `ctl up`; its log: `ctl logs queue`.\n',
  );
});

test('one that does not let us in is up, and says what is missing', () => {
  const shut = { ...running.queue, reason: 'it asks for a token.', queues: null, totals: null };
  expect(screen({ ...running, queue: shut }, 140)).toContain('\nqueue: it asks for a token.\n');
});

test('status: says where authentication is off', () => {
  const open = { ...running, daemon: { ...running.daemon, auth: 'none' } };
  expect(screen(open, 140)).toContain(
    '\ndaemon: auth is none, so every local user has full access.\n',
  );
  expect(screen({ ...open, daemon: { ...running.daemon, auth: 'token' } }, 140)).not.toContain(
    'auth',
  );
});

test('totals are sums, and the oldest of all', () => {
  const summary = {
    paused: false,
    pending: 2,
    in_flight: 1,
    dlq_depth: 3,
    oldest_pending_age_ms: 10,
    callback_url: 'x',
    version: 1,
    updated_at: '',
  };
  const other = { ...summary, paused: true, oldest_pending_age_ms: 40 };
  expect(
    queueTotals([
      { name: 'a', summary },
      { name: 'b', summary: other },
    ]),
  ).toEqual({
    pending: 4,
    in_flight: 2,
    dlq_depth: 6,
    oldest_pending_age_ms: 40,
    paused: 1,
  });
  expect(queueTotals([]).oldest_pending_age_ms).toBe(0);
});

test('status: shows the lag of the connectors', () => {
  const state = {
    name: 'orders-mail',
    collection: 'orders',
    queue: 'mail',
    seq: 980,
    updated_at: '2026-03-02T09:15:00.000Z',
  };
  const connectors = [
    { ...state, lag_ms: 0, error: null },
    { ...state, name: 'audit', lag_ms: 65_000, error: 'QUEUE_NOT_FOUND: no such queue.' },
  ];
  expect(screen({ ...running, db: { ...running.db, connectors } }, 140)).toContain(
    `
CONNECTOR    COLLECTION  QUEUE  LAG    ERROR
orders-mail  orders      mail   0ms    -
audit        orders      mail   1m 5s  QUEUE_NOT_FOUND: no such queue.
`,
  );
});
