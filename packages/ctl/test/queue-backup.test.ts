import { copyFileSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ctlHere as ctl, startCtl } from './run-ctl.js';
import { QueueServer, tokens } from './queue-server.js';

const server = new QueueServer();
beforeAll(() => server.start());
afterAll(() => server.remove());

test('backup: a running server is backed up, and a restored one has its tasks', async () => {
  await server.ok(['create', 'letters', '--pull']);
  const { id } = await server.json(['submit', 'letters', 'write', '--payload', 'hello']);
  const file = join(server.folder, 'monday.backup');
  expect(await server.ok(['backup', '--out', file])).toMatch(/^Backed up .* to /);
  await server.ok(['submit', 'letters', 'write']);
  expect(await server.ok(['verify', '--backup', file])).toContain('is intact');

  const damaged = join(server.folder, 'damaged.backup');
  copyFileSync(file, damaged);
  writeFileSync(damaged, 'more', { flag: 'a' });
  expect((await server.ctl(['verify', '--backup', damaged])).code).toBe(1);
  const data = join(server.folder, 'restored');
  expect((await server.ctl(['restore', '--from', damaged, '--data', data])).code).toBe(1);
  expect(await server.ok(['restore', '--from', file, '--data', data])).toContain('queue serve');
  expect((await server.ctl(['restore', '--from', file, '--data', data])).code).toBe(1);
  expect(await server.ok(['verify', '--data', data])).toContain('No problems found');

  const config = server.write(
    'restored.yaml',
    'listen: 127.0.0.1:0\nmetrics_listen: 127.0.0.1:0\ndata: ./restored\n' +
      'tokens_file: tokens.yaml\n',
  );
  const { child, ended, says } = startCtl(['queue', 'serve', '--config', config]);
  try {
    await says('"listener":"metrics"');
    const env = { MILLRACE_QUEUE_TOKEN: tokens.root };
    const list = () => ctl(['queue', 'tasks', 'letters', '--json', '--data', data], env);
    await expect.poll(async () => (await list()).code).toBe(0);
    const { tasks } = JSON.parse((await list()).out) as { tasks: { id: string }[] };
    expect(tasks.map((task) => task.id)).toEqual([id]);
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
});

test('backup: needs admin on all queues, and writes nothing without', async () => {
  const file = join(server.folder, 'none.backup');
  const env = { MILLRACE_QUEUE_TOKEN: tokens.operator };
  const refused = await server.ctl(['backup', '--out', file], { env });
  expect([refused.code, existsSync(file)]).toEqual([1, false]);
});

test('packaging copy: copies the files for operating Millrace, into an empty directory', async () => {
  const directory = join(server.folder, 'packaging');
  const copied = await ctl(['packaging', 'copy', directory], {});
  expect([copied.code, copied.out]).toEqual([0, expect.stringMatching(/^Copied \d+ files/)]);
  expect(existsSync(join(directory, 'prometheus', 'alerts.yaml'))).toBe(true);
  expect((await ctl(['packaging', 'copy', directory], {})).code).toBe(1);
});
