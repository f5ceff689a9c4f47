import { expect, test } from 'vitest';
import { plain } from '../render/paint.js';
import { bannerFor, eventsFor } from './banner.js';
import { addressOfUrl, withUpFlags, parts } from './parts.js';

test('the three parts stand on the ports of the documentation', () => {
  const ports = parts.flatMap(({ name, addresses }) =>
    addresses.map(({ listener, port }) => `${name} ${listener} ${port}`),
  );
  expect(ports).toEqual([
    'db grpc 5433',
    'db http 8080',
    'queue http 8081',
    'queue metrics 9464',
    'queue grpc 8082',
    'daemon http 8765',
  ]);
});

test('an address is what a URL has between scheme and path', () => {
  expect(addressOfUrl('grpc://127.0.0.1:5433')).toBe('127.0.0.1:5433');
  expect(addressOfUrl('http://[::1]:80/')).toBe('[::1]:80');
});

test('a part that names its own flag is understood to mean that of ctl up', () => {
  const taken = (flag: string) => `ctl: 127.0.0.1:1 is already in use: pass ${flag} host:port`;
  const [db, queue, daemon] = parts;
  expect(withUpFlags(db!, taken('--http'))).toBe(taken('--db-http'));
  expect(withUpFlags(queue!, taken('--listen'))).toBe(taken('--queue-listen'));
  expect(withUpFlags(queue!, taken('--grpc'))).toBe(taken('--queue-grpc'));
  expect(withUpFlags(queue!, taken('--metrics-listen'))).toBe(taken('--metrics-listen'));
  expect(withUpFlags(daemon!, taken('--listen'))).toBe(taken('--listen'));
  expect(withUpFlags(queue!, '{"msg":"--listen"}')).toBe('{"msg":"--listen"}');
});

const running = parts.map((part) => ({
  part,
  listeners: part.addresses.map(({ listener, url }) => ({ listener, url })),
}));

const found = { agents: ['claude', 'codex'], defaultAgent: 'codex', tmux: true, gh: false };
const access = {
  dashboard: 'http://127.0.0.1:8765/#login=mr_code',
  isLogin: true,
  hasAuth: true,
  found,
};

test('banner: says that authentication is off', () => {
  const dashboard = 'http://127.0.0.1:8765';
  const open = { running, dataDir: '/x', dashboard, isLogin: false, hasAuth: false, found };
  const text = bannerFor(open, { columns: 80, paint: plain });
  expect(text).toContain(
    '\nDashboard: http://127.0.0.1:8765\n' +
      'Authentication is off: every user of this machine has full access.\n',
  );
});

test.for([80, 140])('the banner at %i columns', (columns) => {
  const dataDir = '/some/where';
  const banner = bannerFor({ running, dataDir, ...access }, { columns, paint: plain });
  expect(banner.replace(/^Millrace \d+\.\d+\.\d+ /, 'Millrace X ')).toBe(
    `
Millrace X  data in /some/where

SERVER    ADDRESS                STATE
database  grpc://127.0.0.1:5433  running
          http://127.0.0.1:8080  running
queue     http://127.0.0.1:8081  running
          http://127.0.0.1:9464  running
          grpc://127.0.0.1:8082  running
daemon    http://127.0.0.1:8765  running

Dashboard: http://127.0.0.1:8765/#login=mr_code
The link works once and expires after 5 minutes. Get another with \`bin/ctl open\`.
Found: claude, codex; tmux: yes, gh: no. Details: bin/ctl doctor

Try in another terminal:
  bin/ctl status                           the status of all servers
  bin/ctl agent spawn "Say hello"          a first agent in this directory
  bin/ctl db put people ada '{"age": 36}'  a first record in the database

Ctrl-C stops everything.
`.slice(1),
  );
});

test('banner: suggests only commands that work with what was found', () => {
  const textWith = (agents: readonly string[] | undefined, defaultAgent?: string) =>
    bannerFor(
      { running, dataDir: '/x', ...access, found: { ...found, agents, defaultAgent } },
      { columns: 120, paint: plain },
    );
  expect(textWith(['claude'])).toContain('bin/ctl agent spawn "Say hello"  ');
  expect(textWith(['claude', 'codex'])).toContain('agent spawn "Say hello" --backend claude');
  expect(textWith([])).toContain('Found: no coding agent;');
  expect(textWith([])).toContain('bin/ctl demo ');
  expect(textWith(undefined)).not.toContain('Found:');
});

test('for scripts there is a line per listener, as the servers print it', () => {
  expect(eventsFor(running[1]!)).toBe(
    '{"event":"listening","component":"queue","listener":"http","url":"http://127.0.0.1:8081"}\n' +
      '{"event":"listening","component":"queue","listener":"metrics","url":"http://127.0.0.1:9464"}\n' +
      '{"event":"listening","component":"queue","listener":"grpc","url":"grpc://127.0.0.1:8082"}\n',
  );
});
