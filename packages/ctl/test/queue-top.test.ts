import { afterAll, beforeAll, expect, test } from 'vitest';
import { QueueServer, tokens } from './queue-server.js';

const server = new QueueServer();
beforeAll(async () => {
  await server.start();
  await server.makeQueue('mail');
  await server.makeQueue('mail.other');
});
afterAll(() => server.remove());

test('top prints one table without a terminal, of all queues or those named', async () => {
  await server.ok(['submit', 'mail', 'mail.send', '--wait']);
  const { out: all } = await server.ctl(['top'], { columns: 100 });
  expect(all).toMatch(/^QUEUE +PENDING +IN FLIGHT +RATE\/S +FAIL\/S +WAIT P50 +RUN P50 +RATE$/m);
  expect(all).toMatch(/^mail +0 +0 +\S+ +0 +\d\S* +\d\S* /m);
  expect(await server.ok(['top', 'mail.other'])).not.toMatch(/^mail /m);
  const named = await server.ctl(['top', 'mail'], {
    env: { MILLRACE_QUEUE_TOKEN: tokens.operator },
  });
  expect(named.code, named.err).toBe(0);
});

test('top --json prints one line for each refresh', async () => {
  const out = await server.ok(['top', 'mail', '--json', '--count', '2', '--interval', '100ms']);
  const lines = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { queues: object[] });
  expect(lines).toHaveLength(2);
  expect(lines[1]!.queues).toMatchObject([{ name: 'mail', pending: 0, failed_per_second: 0 }]);
  expect((await server.ctl(['top', '--interval', '5ms'])).code).toBe(2);
  expect((await server.ctl(['top', 'nope'])).code).toBe(1);
});
