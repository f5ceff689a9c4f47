// @module-tag campaign-process
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import { useServedHome } from './support/serve.js';
import { removeSessions, type Session } from './support/sessions.js';

type Pipeline = DaemonSchema<'Pipeline'>;

const { home, clis, serve } = useServedHome('pipelines-crash');
// Leaves a mark when it runs, and takes a moment.
clis.add(
  'gemini',
  `const { appendFileSync } = require('node:fs');
   const job = /^Do (\\w+)/.exec(prompt)[1];
   appendFileSync(${JSON.stringify(join(home, 'runs.txt'))}, job + '\\n');
   setTimeout(() => console.log(job + ' is done'), 300);`,
);

function marks(): string[] {
  const file = join(home, 'runs.txt');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

/** Kills the daemon each time this number of further jobs has started. */
test('however often the daemon is killed, no job is started twice and the pipeline ends', async () => {
  const jobs = Array.from({ length: 8 }, (_, n) => ({
    id: `j${n}`,
    prompt: `Do j${n}.`,
    backend: 'gemini',
    depends_on: n === 0 ? [] : n % 3 === 0 ? [`j${n - 1}`, `j${n - 2}`] : [`j${n - 1}`],
  }));
  let daemon = await serve();
  const body = { name: 'crash', jobs };
  const created = await daemon.api.send({ method: 'POST', path: '/api/v1/pipelines', body });
  const path = `/api/v1/pipelines/${created.json.id}`;
  const read = () => daemon.api.ok('GET', path) as Promise<Pipeline>;
  let restarted = 0;
  // A session may be lost with the daemon, which then says so: it is run again.
  const goOn = async () => {
    const { status } = await read();
    if (status !== 'stalled') return status;
    restarted++;
    return (await daemon.api.ok('POST', `${path}:start`)).status as Pipeline['status'];
  };
  const patience = { timeout: 120_000, interval: 20 };
  for (const count of [1, 4]) {
    const begun = async () => (await goOn(), new Set(marks()).size);
    await expect.poll(begun, patience).toBeGreaterThanOrEqual(count);
    await daemon.end('SIGKILL');
    daemon = await serve();
  }
  await expect.poll(goOn, patience).toBe('done');
  const { jobs: ended } = await read();
  expect(ended.map(({ output }) => output)).toEqual(jobs.map(({ id }) => `${id} is done`));
  const { sessions } = (await daemon.api.ok('GET', '/api/v1/sessions')) as { sessions: Session[] };
  expect(sessions.length).toBe(jobs.length + restarted);
  // In order, for each one waits for the one before.
  expect([...new Set(marks())]).toEqual(jobs.map(({ id }) => id));
  expect(marks().length).toBeLessThanOrEqual(jobs.length + restarted);
  await removeSessions(daemon.api);
  await daemon.end('SIGTERM');
}, 600_000);
