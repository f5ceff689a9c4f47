import { afterAll, beforeAll, expect, test } from 'vitest';
import { faultsOf, QueueServer } from './queue-server.js';

const server = new QueueServer();
beforeAll(async () => {
  await server.start();
  await server.makeQueue('mail');
});
afterAll(() => server.remove());

const daily = ['--cron', '0 9 * * *', '--handler', 'mail.digest'];

test('set writes a schedule from flags, list shows it', async () => {
  expect(await server.ok(['schedule', 'list', 'mail'])).toMatch(/^No schedules yet\./);
  const flags = [...daily, '--timezone', 'Asia/Tokyo', '--payload', '{"a":1}', '--jitter', '5s'];
  expect(await server.ok(['schedule', 'set', 'mail', 'digest', ...flags])).toMatch(
    /^digest runs next at \S+T00:00:00\.000Z\.\n$/,
  );
  const every = ['--every', '2h', '--handler', 'mail.poll', '--overlap', 'allow'];
  await server.ok(['schedule', 'set', 'mail', 'poll', ...every, '--catch-up', 'none']);
  const table = await server.ok(['schedule', 'list', 'mail']);
  expect(table).toMatch(/^digest +active +0 9 \* \* \* Asia\/Tokyo +in .+ never +mail\.digest$/m);
  expect(table).toMatch(/^poll +active +every 2\S* +in .+ never +mail\.poll$/m);
  const list = (await server.json(['schedule', 'list', 'mail'])) as { schedules: unknown[] };
  expect(faultsOf('ScheduleList', list)).toEqual([]);
  expect(list.schedules).toMatchObject([
    {
      name: 'digest',
      jitter_ms: 5_000,
      // Lists have no payloads.
      task: { handler_ref: 'mail.digest', payload_content_type: 'application/json' },
    },
    { name: 'poll', every_ms: 7_200_000, overlap: 'allow', catch_up: 'none' },
  ]);
});

test('get shows a schedule with its payload', async () => {
  const flags = [...daily, '--payload', '{"to":"ada"}', '--jitter', '5s', '--description', 'Mail'];
  await server.ok(['schedule', 'set', 'mail', 'greet', ...flags]);
  const sheet = await server.ok(['schedule', 'get', 'mail', 'greet']);
  expect(sheet).toMatch(/^when +0 9 \* \* \*$/m);
  expect(sheet).toMatch(/^next +\S+Z \(in .+\)$/m);
  expect(sheet).toMatch(/^last +never$/m);
  expect(sheet).toMatch(/^payload +12 B of application\/json: \{"to":"ada"\}$/m);
  expect(sheet).toMatch(/^description +Mail$/m);
  const schedule = await server.json(['schedule', 'get', 'mail', 'greet']);
  expect(faultsOf('Schedule', schedule)).toEqual([]);
  const payload = Buffer.from('{"to":"ada"}').toString('base64');
  expect(schedule).toMatchObject({ name: 'greet', task: { payload } });
  await server.ok(['schedule', 'run-now', 'mail', 'greet']);
  expect(await server.ok(['schedule', 'get', 'mail', 'greet'])).toMatch(
    /^last +\S+Z \(task \S+\)$/m,
  );
  const missing = await server.ctl(['schedule', 'get', 'mail', 'nope', '--json']);
  expect([missing.code, JSON.parse(missing.err).error.code]).toEqual([1, 'SCHEDULE_NOT_FOUND']);
  await server.ok(['schedule', 'remove', 'mail', 'greet']);
});

test('set takes a file or flags, and names what is wrong', async () => {
  const file = server.write('s.yaml', "cron: '0 3 * * *'\ntask: {handler_ref: a}\n");
  expect(await server.ok(['schedule', 'set', 'mail', 'nightly', file])).toMatch(/^nightly runs/);
  for (const wrong of [
    [file, '--cron', '0 3 * * *'],
    ['--cron', '0 3 * * *'],
    ['--handler', 'a'],
    [...daily, '--every', '5s'],
    [...daily, '--payload', '{a'],
  ]) {
    expect((await server.ctl(['schedule', 'set', 'mail', 'x', ...wrong])).code).toBe(2);
  }
  const refused = await server.ctl(['schedule', 'set', 'mail', 'x', ...daily, '--timezone', 'X']);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain('/timezone is not a time zone');
});

test('run-now, pause, resume and remove', async () => {
  await server.ok(['schedule', 'set', 'mail', 'digest', ...daily]);
  const [, id] = /^Submitted (\S+)\.\n$/.exec(
    await server.ok(['schedule', 'run-now', 'mail', 'digest']),
  )!;
  expect(await server.json(['get', id!])).toMatchObject({ handler_ref: 'mail.digest' });
  expect(await server.ok(['schedule', 'pause', 'mail', 'digest'])).toBe('digest is paused.\n');
  expect(await server.ok(['schedule', 'list', 'mail'])).toMatch(/^digest +paused .* - /m);
  expect(await server.ok(['schedule', 'resume', 'mail', 'digest'])).toMatch(/^digest runs next/);
  expect(await server.ok(['schedule', 'remove', 'mail', 'digest'])).toBe('Deleted digest.\n');
  const gone = await server.ctl(['schedule', 'remove', 'mail', 'digest', '--json']);
  expect([gone.code, JSON.parse(gone.err).error.code]).toEqual([1, 'SCHEDULE_NOT_FOUND']);
});
