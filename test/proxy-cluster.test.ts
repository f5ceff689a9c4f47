import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { DbServer } from '../packages/ctl/test/db-server.js';
import { startDaemon, type TestDaemon } from '../packages/daemon/test/support/daemon.js';

/** The daemon's proxy in front of two nodes of a database, of which one leads. */
const first = new DbServer();
const second = new DbServer();
let daemon: TestDaemon;

beforeAll(async () => {
  await first.start('--no-auth');
  await second.start('--no-auth', '--follow', first.url('grpc'));
  // The follower stands first, so that the order of the addresses cannot be what counts.
  const urls = [second.url('http'), first.url('http')].join(',');
  daemon = await startDaemon({ flags: { 'database-url': urls } });
});
afterAll(async () => {
  await daemon.dispose();
  await Promise.all([first.remove(), second.remove()]);
});

const put = (key: string) =>
  daemon.api.send({
    method: 'POST',
    path: '/api/v1/proxy/db/v1/people/keys',
    body: { key, data: { name: key } },
  });

test('writes go to the leader, and to the next one after a promotion', async () => {
  expect((await put('ada')).status).toBe(200);
  await vi.waitFor(async () => {
    expect((await second.json(['get', 'people', 'ada'])).record.key).toBe('ada');
  }, 60_000);
  await first.stop();
  expect((await put('bob')).status).toBeGreaterThanOrEqual(400);
  await second.json(['promote']);
  await vi.waitFor(async () => expect((await put('bob')).status).toBe(200), 60_000);
});
