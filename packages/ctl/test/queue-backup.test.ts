import { copyFileSync, existsSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { open, type RowReader } from '@millrace/engine';
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
  const verified = await server.ok(['verify', '--data', data]);
  expect(verified).toContain('No problems found: checked 1 task of 1 queue');
  const database = await open(join(data, 'queue'));
  const allRows = (rows: RowReader) => [
    ...rows.range({ start: Buffer.of(0), end: Buffer.of(255) }),
  ];
  const task = database.readRows(allRows).find(({ value }) => value.includes('hello'))!;
  await database.transact(({ rows }) => rows.remove(task.key));
  await database.close();
  const found = await server.ctl(['verify', '--data', data, '--json']);
  expect([found.code, JSON.parse(found.out)]).toMatchObject([
    1,
    { ok: false, tasks: 0, queues: 1 },
  ]);
  await rm(data, { recursive: true });
  await server.ok(['restore', '--from', file, '--data', data]);

  expect(await tasksIn('restored')).toEqual([id]);
});

/** Ids of the tasks that a server on a restored directory has. */
async function tasksIn(name: string): Promise<string[]> {
  const config = server.write(
    `${name}.yaml`,
    `listen: 127.0.0.1:0\nmetrics_listen: 127.0.0.1:0\ndata: ./${name}\n` +
      'tokens_file: tokens.yaml\n',
  );
  const { child, ended, says } = startCtl(['queue', 'serve', '--config', config]);
  try {
    await says('"listener":"metrics"');
    const env = { MILLRACE_QUEUE_TOKEN: tokens.root };
    const data = join(server.folder, name);
    const list = () => ctl(['queue', 'tasks', 'letters', '--json', '--data', data], env);
    await expect.poll(async () => (await list()).code).toBe(0);
    const { tasks } = JSON.parse((await list()).out) as { tasks: { id: string }[] };
    return tasks.map((task) => task.id).toSorted();
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

test('backup: increments are restored to their ends and to a time', async () => {
  const file = (name: string) => join(server.folder, `${name}.backup`);
  const submit = async () => {
    const { id } = await server.json(['submit', 'letters', 'write', '--payload', 'x']);
    return id as string;
  };
  const before = await tasksOf();
  const full = await server.json(['backup', '--out', file('full')]);
  const first = await submit();
  const one = ['backup', '--out', file('one'), '--since', file('full')];
  const made = await server.json(one);
  expect(made).toMatchObject({ since_seq: full.seq });
  const time = new Date().toISOString();
  // A time includes everything of its millisecond.
  await expect.poll(() => new Date().toISOString()).not.toBe(time);
  const second = await submit();
  const two = ['backup', '--out', file('two'), '--since-seq', String(made.seq)];
  expect(await server.ok(two)).toContain(`after ${made.seq} `);

  const all = ['full', 'one', 'two'].flatMap((name) => ['--from', file(name)]);
  const restore = (name: string, ...more: string[]) =>
    server.json(['restore', ...all, '--data', join(server.folder, name), ...more]);
  await restore('end');
  expect(await tasksIn('end')).toEqual([...before, first, second].toSorted());
  await restore('time', '--to', time);
  expect(await tasksIn('time')).toEqual([...before, first].toSorted());
  expect(await restore('number', '--to', String(full.seq))).toMatchObject({ seq: full.seq });
  expect(await tasksIn('number')).toEqual(before);

  const gap = ['--from', file('full'), '--from', file('two')];
  const refused = await server.ctl(['restore', ...gap, '--data', join(server.folder, 'gap')]);
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('without a gap')]);
  const onItself = await server.ctl(['backup', '--out', file('full'), '--since', file('full')]);
  expect(onItself).toMatchObject({ code: 2, err: expect.stringContaining('another file') });
  const both = ['backup', '--out', file('none'), '--since', file('one'), '--since-seq', '1'];
  expect((await server.ctl(both)).code).toBe(2);
  const late = ['backup', '--out', file('none'), '--since-seq', '999999999'];
  expect((await server.ctl(late)).err).toContain('since_seq must be the seq of a backup');
  expect(existsSync(file('none'))).toBe(false);
});

async function tasksOf(): Promise<string[]> {
  const { tasks } = await server.json(['tasks', 'letters']);
  return tasks.map(({ id }: { id: string }) => id).toSorted();
}

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
