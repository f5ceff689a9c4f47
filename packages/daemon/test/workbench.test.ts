import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectSchema } from './support/client.js';
import { WorkbenchDaemon } from './support/workbench.js';

let bench: WorkbenchDaemon;
beforeAll(async () => {
  bench = await WorkbenchDaemon.start();
});
afterAll(() => bench.daemon.dispose());

test('an agent’s work is reviewed, committed and merged over REST, and the log says by whom', async () => {
  const { api, log } = bench.daemon;
  const { path, id } = await bench.agent('review');
  expect(await api.ok('GET', path)).toMatchObject({ branch: 'review', base_branch: 'main' });
  const diff = await api.ok('GET', `${path}/diff`);
  expectSchema('SessionDiff', diff);
  expect(diff).toMatchObject({
    base: 'main',
    additions: 1,
    truncated: false,
    files: [{ path: 'made.txt', status: 'added', hunks: [{ lines: ['+made'] }] }],
  });
  // A body is not needed.
  const made = await api.ok('POST', `${path}:commit`);
  expect(made).toMatchObject({
    session_id: id,
    branch: 'review',
    message: 'review',
    file_count: 1,
  });
  const merged = await api.ok('POST', `${path}:merge`, { strategy: 'squash' });
  expectSchema('SessionMerge', merged);
  expect(existsSync(join(bench.repo.path, 'made.txt'))).toBe(true);
  expect(bench.repo.git('rev-parse', 'main')).toBe(merged.commit);
  const lines = log.lines.filter(({ message }) => message === 'branch changed');
  expect(lines.map(({ fields }) => fields)).toMatchObject([
    { action: 'commit', session_id: id, commit: made.commit, principal: expect.any(String) },
    { action: 'merge', session_id: id, commit: merged.commit, base: 'main' },
  ]);
});

test('a conflict is answered with its files', async () => {
  const { api } = bench.daemon;
  const { path, work } = await bench.agent('clash');
  bench.conflict(work, 'first.txt');
  for (const [act, body] of [
    ['merge', { strategy: 'rebase' }],
    ['rebase', undefined],
  ] as const) {
    const request = { method: 'POST', path: `${path}:${act}`, ...(body && { body }) };
    const problem = await api.refused(request, 409, 'MERGE_CONFLICT');
    expect(problem.conflicts).toEqual(['first.txt']);
  }
});

test('a session outside a repository has no workspace', async () => {
  const { api, home } = bench.daemon;
  const body = { prompt: 'x', backend: 'claude', driver: 'headless', cwd: home };
  const { json } = await api.send({ method: 'POST', path: '/api/v1/spawn', body });
  const path = `/api/v1/sessions/${json.id}`;
  await api.refused({ path: `${path}/diff` }, 409, 'NO_WORKSPACE');
  await api.refused({ method: 'POST', path: `${path}:push` }, 409, 'NO_WORKSPACE');
});
