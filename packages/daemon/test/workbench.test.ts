import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { expectSchema } from './support/client.js';
import { endDaemon } from './support/sessions.js';
import { WorkbenchDaemon } from './support/workbench.js';

const again = inCampaign('process');

let bench: WorkbenchDaemon;
beforeAll(async () => {
  bench = await WorkbenchDaemon.start();
});
afterAll(() => endDaemon(bench.daemon));

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
  const board = await api.ok('GET', '/api/v1/board');
  expectSchema('Board', board);
  expect(board.columns[3]).toMatchObject({ name: 'review', sessions: [{ id }] });
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

const doneUntil = (how: string) => `board: ${how} is done until it has commits again`;

test(doneUntil('a session merged here by merge'), () => mergeHere('merge'));
again(doneUntil('a session merged here by squash'), () => mergeHere('squash'));
again(doneUntil('a session merged here by rebase'), () => mergeHere('rebase'));

async function mergeHere(strategy: string): Promise<void> {
  const { api } = bench.daemon;
  const { path, id, work } = await bench.agent(`board-${strategy}`);
  const column = async () => {
    const { columns } = (await api.ok('GET', '/api/v1/board')) as DaemonSchema<'Board'>;
    return columns.find(({ sessions }) => sessions.some((one) => one.id === id))?.name;
  };
  writeFileSync(join(work.path, `${strategy}.txt`), 'made');
  await api.ok('POST', `${path}:commit`);
  expect(await column()).toBe('review');
  await api.ok('POST', `${path}:merge`, { strategy });
  expect(await column()).toBe('done');
  const session = await api.ok('GET', path);
  expectSchema('Session', session);
  expect(session.merged_at).toEqual(expect.any(String));
  writeFileSync(join(work.path, `${strategy}-late.txt`), 'late');
  await api.ok('POST', `${path}:commit`);
  expect(await column()).toBe('review');
  expect((await api.ok('GET', path)).merged_at).toBeNull();
}

again.each(['--no-ff', '--ff-only'])(
  'board: a branch merged by hand with %s is done until it has commits again',
  async (how) => {
    const { api } = bench.daemon;
    const name = `by-hand${how}`;
    const { path, id, work } = await bench.agent(name);
    const column = async () => {
      const { columns } = (await api.ok('GET', '/api/v1/board')) as DaemonSchema<'Board'>;
      return columns.find(({ sessions }) => sessions.some((one) => one.id === id))?.name;
    };
    // The base contains a branch without commits, but there is nothing that was merged.
    expect(await column()).toBe('review');
    writeFileSync(join(work.path, `${name}.txt`), 'made');
    await api.ok('POST', `${path}:commit`);
    expect(await column()).toBe('review');
    bench.repo.git('merge', '--quiet', how, work.git('rev-parse', '--abbrev-ref', 'HEAD'));
    expect(await column()).toBe('done');
    expect((await api.ok('GET', path)).merged_at ?? null).toBeNull();
    // What was seen of a branch counts only until it has commits again.
    await api.ok('GET', '/api/v1/collab/branches?refresh=true');
    expect(await column()).toBe('done');
    writeFileSync(join(work.path, `${name}-late.txt`), 'late');
    await api.ok('POST', `${path}:commit`);
    expect(await column()).toBe('review');
  },
);

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

test('names are unique among live sessions, and name a session in every path', async () => {
  const { api, home } = bench.daemon;
  bench.clis.add('claude', 'setInterval(() => {}, 1000);');
  const body = { prompt: 'x', backend: 'claude', driver: 'headless', cwd: home, name: 'two words' };
  const spawn = { method: 'POST', path: '/api/v1/spawn', body };
  const replies = await Promise.all([api.send(spawn), api.send(spawn), api.send(spawn)]);
  const names = replies.map(({ json }) => json.name as string).toSorted();
  expect(names).toEqual(['two words', 'two words-2', 'two words-3']);
  const { json: first } = replies.find(({ json }) => json.name === 'two words')!;
  expect(await api.ok('GET', '/api/v1/sessions/two%20words')).toMatchObject({ id: first.id });
  const prefix = first.id.toLowerCase();
  expect(await api.ok('GET', `/api/v1/sessions/${prefix}`)).toMatchObject({ id: first.id });
  await api.ok('POST', '/api/v1/sessions/two%20words:stop');
  // The name is free again, and means the live session from now on.
  const { json: next } = await api.send(spawn);
  expect(next).toMatchObject({ name: 'two words' });
  expect(await api.ok('GET', '/api/v1/sessions/two%20words')).toMatchObject({ id: next.id });
  for (const { json } of [...replies, { json: next }]) {
    await api.ok('DELETE', `/api/v1/sessions/${json.id}`);
  }
});
