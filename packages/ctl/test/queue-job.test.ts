import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { faultsOf, QueueServer } from './queue-server.js';

const server = new QueueServer();
beforeAll(async () => {
  await server.start();
  await server.makeQueue('mail');
});
afterAll(() => server.remove());

test('--async starts a job, and job list, get and cancel follow it', async () => {
  expect(await server.ok(['job', 'list', 'mail'])).toMatch(/^No jobs\./);
  const [, id = ''] = /^Started the job (\S+)\. Check it/.exec(
    await server.ok(['purge', 'mail', '--all', '--yes', '--async']),
  )!;
  await vi.waitFor(
    async () => expect(await server.ok(['job', 'get', id])).toMatch(/^status +done$/m),
    60_000,
  );
  expect(await server.ok(['job', 'get', id])).toMatch(/^selector +\{"filter":\{\}\}$/m);
  expect(await server.ok(['job', 'list', 'mail'])).toMatch(
    new RegExp(`^${id} +purge +done +0 `, 'm'),
  );
  expect(faultsOf('JobList', await server.json(['job', 'list', 'mail']))).toEqual([]);
  const late = await server.ctl(['job', 'cancel', id, '--json']);
  expect([late.code, JSON.parse(late.err).error.code]).toEqual([1, 'JOB_FINISHED']);
  const redrive = await server.json([
    'redrive',
    'mail',
    '--all',
    '--yes',
    '--async',
    '--rate',
    '9',
  ]);
  expect(redrive).toMatchObject({ job: { action: 'redrive', selector: { rate_per_second: 9 } } });
});

test('--async is not combined with a count, and a filter needs --yes', async () => {
  for (const wrong of [['--dry-run'], []]) {
    expect((await server.ctl(['purge', 'mail', '--all', '--async', ...wrong])).code).toBe(2);
  }
  expect((await server.ctl(['job', 'get', 'x'])).code).toBe(1);
});
