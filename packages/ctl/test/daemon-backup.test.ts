import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DaemonServer } from './daemon-server.js';

const server = new DaemonServer();
beforeAll(async () => {
  server.install('claude');
  await server.start();
});
afterAll(() => server.remove());

const tierIn = async (data: string) => {
  const restored = new DaemonServer();
  try {
    restored.install('claude');
    await restored.start('--data-dir', data);
    const { backends } = await restored.json(['backend', 'list', '--data', data]);
    return backends.find(({ id }: { id: string }) => id === 'claude').tier as string;
  } finally {
    await restored.remove();
  }
};

test('backup: a full one and increments in a directory, restored to the end or a point in time', async () => {
  const backups = join(server.home, 'backups');
  await server.json(['backend', 'tier', 'claude', 'free']);
  const full = await server.json(['daemon', 'backup', backups]);
  expect(full).toMatchObject({ since_seq: 0 });
  await server.json(['backend', 'tier', 'claude', 'pay_per_use']);
  const more = await server.json(['daemon', 'backup', backups]);
  expect(more).toMatchObject({ since_seq: full.seq });
  expect(more.seq).toBeGreaterThan(full.seq);
  await server.json(['backend', 'tier', 'claude', 'subscription']);
  const between = new Date().toISOString();
  const again = await server.json(['daemon', 'backup', backups, '--full']);
  expect(again).toMatchObject({ since_seq: 0 });

  const end = join(server.home, 'end');
  const restored = await server.json(['daemon', 'restore', backups, '--data', end]);
  expect(restored.seq).toBe(again.seq);
  expect(await tierIn(end)).toBe('subscription');
  const early = join(server.home, 'early');
  const to = ['--to', String(full.seq)];
  await server.json(['daemon', 'restore', backups, '--data', early, ...to]);
  expect(await tierIn(early)).toBe('free');

  const middle = join(server.home, 'middle');
  await server.json(['daemon', 'restore', backups, '--data', middle, '--to', String(more.seq)]);
  expect(await tierIn(middle)).toBe('pay_per_use');

  const used = await server.ctl(['daemon', 'restore', backups, '--data', end]);
  expect([used.code, used.out]).toEqual([1, '']);
  appendFileSync(more.file, 'more');
  const other = join(server.home, 'other');
  const damaged = ['daemon', 'restore', backups, '--data', other, '--to', between];
  expect((await server.ctl(damaged)).code).toBe(1);
  const none = await server.ctl(['daemon', 'restore', join(server.home, 'no'), '--data', other]);
  expect([none.code, none.err]).toEqual([1, expect.stringContaining('There is no directory')]);
});
