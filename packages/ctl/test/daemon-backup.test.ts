import { appendFileSync, copyFileSync, mkdirSync } from 'node:fs';
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

test('restore: full backups of a build before increments, by their old names', async () => {
  const old = join(server.home, 'old');
  mkdirSync(old);
  const copies = [];
  for (const number of [1, 2]) {
    const made = await server.json(['daemon', 'backup', join(server.home, `copy-${number}`)]);
    copyFileSync(made.file, join(old, `daemon-${String(number).padStart(12, '0')}.backup`));
    copies.push(made);
  }
  const restore = (name: string, ...to: string[]) =>
    server.json(['daemon', 'restore', old, '--data', join(server.home, name), ...to]);
  expect((await restore('old-end')).seq).toBe(copies[1].seq);
  expect((await restore('old-early', '--to', copies[0].created_at)).seq).toBe(copies[0].seq);
});
