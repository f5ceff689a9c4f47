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

test('backup: several in a directory, restored to the newest or to an earlier one', async () => {
  const backups = join(server.home, 'backups');
  await server.json(['backend', 'tier', 'claude', 'free']);
  const full = await server.json(['daemon', 'backup', backups]);
  expect(full).toMatchObject({ since_seq: 0 });
  await server.json(['backend', 'tier', 'claude', 'pay_per_use']);
  const more = await server.json(['daemon', 'backup', backups]);
  // The log does not have the rows of the queue that plans run on, so all are full.
  expect(more).toMatchObject({ since_seq: 0 });
  expect(more.seq).toBeGreaterThan(full.seq);

  const end = join(server.home, 'end');
  const restored = await server.json(['daemon', 'restore', backups, '--data', end]);
  expect(restored.seq).toBe(more.seq);
  expect(await tierIn(end)).toBe('pay_per_use');
  const early = join(server.home, 'early');
  const to = ['--to', String(full.seq)];
  await server.json(['daemon', 'restore', backups, '--data', early, ...to]);
  expect(await tierIn(early)).toBe('free');

  const again = await server.ctl(['daemon', 'restore', backups, '--data', end]);
  expect([again.code, again.out]).toEqual([1, '']);
  appendFileSync(more.file, 'more');
  const other = join(server.home, 'other');
  expect((await server.ctl(['daemon', 'restore', backups, '--data', other])).code).toBe(1);
  const none = await server.ctl(['daemon', 'restore', join(server.home, 'no'), '--data', other]);
  expect([none.code, none.err]).toEqual([1, expect.stringContaining('There is no directory')]);
});
