import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { faultsOf, QueueServer, tokens } from './queue-server.js';

const server = new QueueServer();
let serial = 0;
let queue = '';
beforeAll(() => server.start());
beforeEach(async () => {
  queue = `mail.${++serial}`;
  await server.makeQueue(queue);
});
afterAll(() => server.remove());

const env = { MILLRACE_QUEUE_TOKEN: tokens.operator };
const idsOf = (page: { tasks: { id: string }[] }) => page.tasks.map(({ id }) => id);
const delayed = async (handler: string) => {
  const task = await server.json(['submit', queue, handler, '--delay', '1h']);
  return String(task.id);
};

test('tasks: lists by status and handler, page by page, and counts', async () => {
  const [dead = ''] = await server.bury(queue, ['refuse.a']);
  const first = await delayed('mail.send');
  const second = await delayed('mail.other');
  const all = await server.json(['tasks', queue], { env });
  expect(faultsOf('TaskPage', all)).toEqual([]);
  expect(idsOf(all)).toEqual([second, first, dead]);
  const pending = await server.json(['tasks', queue, '--status', 'pending', '--order', 'next']);
  expect(idsOf(pending)).toEqual([first, second]);
  const both = ['--status', 'DEAD', '--status', 'PENDING', '--handler-ref', 'mail.send'];
  expect(idsOf(await server.json(['tasks', queue, ...both]))).toEqual([first]);
  const page = await server.ctl(['tasks', queue, '--limit', '2']);
  expect(page.out).toMatch(/^TASK +STATUS +AGE +ATTEMPTS +HANDLER +STATE *\n/);
  expect(page.out).toMatch(/PENDING .* due in \d+[hm][^a]*\n/);
  const cursor = /^There are more. Continue with --cursor (\S+)$/m.exec(page.out)?.[1] ?? '';
  expect(idsOf(await server.json(['tasks', queue, '--cursor', cursor]))).toEqual([dead]);
  expect(await server.ok(['tasks', queue, '--count'])).toBe('3 tasks.\n');
  expect(await server.json(['tasks', queue, '--count', '--status', 'DEAD'])).toEqual({
    count: 1,
    is_estimate: false,
  });
  expect(await server.ok(['tasks', queue, '--handler-ref', 'none'])).toBe('No tasks.\n');
  const bad = await server.ctl(['tasks', queue, '--order', 'next', '--json']);
  expect(JSON.parse(bad.err).error.code).toBe('INVALID_QUERY');
});

test('tasks: a task of a pull queue is ready, and waits while the queue is paused', async () => {
  const pull = `${queue}.pull`;
  await server.ok(['create', pull, '--pull']);
  await server.ok(['submit', pull, 'mail.send']);
  expect(await server.ok(['tasks', pull])).toMatch(/PENDING .* ready *\n/);
  await server.ok(['pause', pull]);
  expect(await server.ok(['tasks', pull])).toMatch(/PENDING .* waits: the queue is paused *\n/);
});

test('tasks: --watch shows the list until it is interrupted', async () => {
  await delayed('mail.send');
  const stop = new AbortController();
  let pages = 0;
  await server.ctl(['tasks', queue, '--watch', '--interval', '100ms', '--json'], {
    signal: stop.signal,
    onOut: () => ++pages === 3 && stop.abort(),
  });
  expect(pages).toBeGreaterThanOrEqual(3);
});

test('cancel and run-now: change tasks by id', async () => {
  const first = await delayed('mail.send');
  const second = await delayed('mail.send');
  expect(await server.ok(['cancel', first, '--reason', 'withdrawn'])).toBe('Cancelled: 1 task.\n');
  expect(await server.json(['get', first])).toMatchObject({
    dead_reason: 'CANCELLED',
    last_error: { message: 'withdrawn' },
  });
  expect(await server.json(['run-now', second.toLowerCase()], { env })).toMatchObject({
    id: second,
  });
  const late = await server.ctl(['run-now', first, '--json']);
  expect(late.code).toBe(1);
  expect(JSON.parse(late.err).error.code).toBe('TASK_NOT_PENDING');
});

test('cancel: by a filter asks first', async () => {
  for (let i = 0; i < 3; i++) await delayed('mail.send');
  const other = await delayed('mail.other');
  const filter = ['cancel', '--queue', queue, '--handler-ref', 'mail.send'];
  expect(await server.json([...filter, '--dry-run'])).toEqual({ count: 3 });
  const no = await server.ctl(filter, { typed: 'n\n' });
  expect([no.code, no.out]).toEqual([1, '']);
  expect(no.err).toContain(`Cancel 3 tasks of ${queue}? [y/N] `);
  expect((await server.ctl(filter)).code).toBe(2);
  const yes = await server.ctl(filter, { typed: 'y\n' });
  expect(yes).toMatchObject({ code: 0, out: `Cancelled 3 tasks of ${queue}.\n` });
  expect(await server.json(['cancel', '--queue', queue, '--all', '--yes'])).toEqual({ count: 1 });
  expect(await server.json(['get', other])).toMatchObject({ status: 'DEAD' });
  for (const wrong of [
    ['cancel'],
    ['cancel', '--all'],
    ['cancel', other, '--queue', queue],
    ['cancel', '--queue', queue],
  ]) {
    expect((await server.ctl(wrong)).code).toBe(2);
  }
});

test('flows: submit --depends-on, tree, signal and redrive --from-step', async () => {
  const pull = `${queue}.flow`;
  await server.ok(['create', pull, '--pull']);
  const first = String((await server.json(['submit', pull, 'first'])).id);
  const after = ['--depends-on', `${first}:end`];
  const second = String((await server.json(['submit', pull, 'second', ...after])).id);
  expect(await server.ok(['get', second])).toContain('tasks that it depends on have not ended');
  expect(await server.ok(['tasks', pull])).toMatch(/PENDING .* waits for its dependencies *\n/);
  expect(await server.ok(['tree', first])).toMatch(
    new RegExp(`^${first} PENDING ${pull} first\n$`),
  );
  expect(await server.ok(['signal', first, 'go', '{"by":"ada"}', '--signal-id', 's1'])).toBe(
    `Sent go to ${first}.\n`,
  );
  const again = await server.json(['signal', first, 'go', '--signal-id', 's1']);
  expect(again).toMatchObject({ id: 's1', payload: { by: 'ada' } });
  expect((await server.ctl(['signal', first, 'go', '{bad'])).code).toBe(2);
  expect((await server.ctl(['submit', pull, 'x', '--depends-on', `${first}:maybe`])).code).toBe(2);
  await server.ok(['cancel', first]);
  const none = await server.ctl(['redrive', pull, first, '--from-step', 'nope', '--json']);
  expect(JSON.parse(none.err).error.code).toBe('INVALID_SELECTOR');
  expect(
    (await server.ctl(['redrive', pull, first, '--from-step', 'a', '--reset-steps'])).code,
  ).toBe(2);
  expect(await server.ok(['redrive', pull, first, '--reset-steps'])).toContain('Redrove 1 task');
});
