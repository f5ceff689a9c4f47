import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import { useServedHome } from './support/serve.js';
import { gitIn, newRepo, removeSessions, type Session } from './support/sessions.js';

type Plan = DaemonSchema<'Plan'>;

const { home, clis, serve } = useServedHome('plans-crash');
const marks = join(home, 'runs.txt');
// Leaves a mark when it runs, and takes a moment; a reviewer finds something once.
clis.add(
  'gemini',
  `const fs = require('node:fs');
   // Run for its help.
   if (prompt === '') return;
   const isReview = prompt.startsWith('Review');
   const isFix = prompt.includes('A reviewer has read');
   const [, task] = /Do (one|two|three)/.exec(prompt) ?? [, 'fix'];
   const what = isReview ? 'review-' + task : isFix ? 'fix' : task;
   fs.appendFileSync(${JSON.stringify(marks)}, what + '\\n');
   if (!isReview) fs.appendFileSync(what + '.txt', what + '\\n');
   const said = isReview ? (fs.existsSync('fix.txt') ? 'DONE' : 'Add a fix.') : what + ' is done';
   setTimeout(() => console.log(said), 300);`,
);

const marked = () =>
  existsSync(marks) ? readFileSync(marks, 'utf8').trim().split('\n').filter(Boolean) : [];

test('plan: killed twice, it goes on, starts no session twice and loses no result', async () => {
  const repo = newRepo(join(home, 'repo'));
  const tasks = [
    { key: 'one', prompt: 'Do one.', backend: 'gemini', verify: 'test -f one.txt' },
    {
      key: 'two',
      prompt: 'Do two.',
      backend: 'gemini',
      depends_on: ['one'],
      review: { by: 'gemini', rounds: 2 },
      merge: 'auto',
    },
    { key: 'three', prompt: 'Do three.', backend: 'any', depends_on: ['two'] },
  ];
  let daemon = await serve();
  // The machine may have command lines of its own, which `any` would choose.
  for (const { id } of (await daemon.api.ok('GET', '/api/v1/backends')).backends) {
    if (id === 'gemini' || id === 'local') continue;
    await daemon.api.ok('PATCH', `/api/v1/backends/${id}`, { enabled: false });
  }
  const body = { title: 'crash', repo, tasks };
  const created = await daemon.api.send({ method: 'POST', path: '/api/v1/plans', body });
  expect(created.status).toBe(201);
  const path = `/api/v1/plans/${created.json.id}`;
  const read = () => daemon.api.ok('GET', path) as Promise<Plan>;
  const patience = { timeout: 120_000, interval: 20 };
  for (const seen of ['one', 'review-two']) {
    await expect.poll(marked, patience).toContain(seen);
    await daemon.end('SIGKILL');
    daemon = await serve();
  }
  await expect.poll(async () => (await read()).status, patience).toBe('done');
  const plan = await read();
  expect(plan.tasks.map(({ status }) => status)).toEqual(['done', 'done', 'done']);
  expect(plan.tasks.map(({ result }) => result?.split('\n').at(-1))).toEqual([
    'one is done',
    'fix is done',
    'three is done',
  ]);
  // The author, two reviews and nothing else; what was lost with a daemon is the same session.
  expect(plan.tasks.map(({ sessions }) => sessions.length)).toEqual([1, 3, 1]);
  const { sessions } = (await daemon.api.ok('GET', '/api/v1/sessions')) as { sessions: Session[] };
  expect(sessions).toHaveLength(5);
  // A session whose start was cut off is started again; none runs to its end twice.
  const runs = sessions.reduce((sum, each) => sum + 1 + each.restart_count, 0);
  expect(marked().length).toBeLessThanOrEqual(runs);
  expect(gitIn(repo, 'ls-tree', '--name-only', 'main')).toBe('fix.txt\ntwo.txt');
  expect(gitIn(repo, 'log', '--merges', '--format=%s', 'main').split('\n')).toHaveLength(1);
  await removeSessions(daemon.api);
  await daemon.end('SIGTERM');
}, 600_000);
