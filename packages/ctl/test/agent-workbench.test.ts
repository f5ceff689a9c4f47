import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { contractExample } from '../src/daemon/contract-examples.test-support.js';
import { FakeDaemon } from './fake-daemon.js';
import { runCtl, type Ran } from './queue-server.js';

const session = contractExample('SessionList').sessions[0]!;
const path = `/api/v1/sessions/${session.id}`;
let daemon: FakeDaemon;
let home = '';
beforeAll(async () => {
  daemon = await FakeDaemon.start();
  home = mkdtempSync(join(tmpdir(), 'ctl-workbench-'));
});
afterAll(async () => {
  await daemon.stop();
  rmSync(home, { recursive: true, force: true });
});
beforeEach(() => {
  daemon.requests.length = 0;
  daemon.routes.clear();
  daemon.routes.set('GET /api/v1/sessions', { body: { sessions: [session] } });
  for (const [verb, example] of [
    ['commit', 'SessionCommit'],
    ['push', 'SessionPush'],
    ['open-pr', 'SessionPullRequest'],
    ['merge', 'SessionMerge'],
    ['rebase', 'SessionRebase'],
  ] as const) {
    daemon.routes.set(`POST ${path}:${verb}`, { body: contractExample(example) });
  }
});

const ctl = (...args: string[]): Promise<Ran> =>
  runCtl(['agent', ...args], { env: { HOME: home, MILLRACE_URL: daemon.url } });

const sent = () => JSON.parse(daemon.requests.at(-1)!.body) as unknown;

test('diff: prints a diff on stdout and the counts on stderr', async () => {
  const diff = contractExample('SessionDiff');
  daemon.routes.set(`GET ${path}/diff`, { body: diff });
  const { code, out, err } = await ctl('diff', session.name, '--base', 'main');
  expect([code, err]).toEqual([0, expect.stringMatching(/^1 file changed/)]);
  expect(out).toMatch(/^diff --git a\/src\/upload.ts/);
  expect(daemon.requests.at(-1)!.line).toBe(`GET ${path}/diff?base=main`);
  expect((await ctl('diff', session.name, '--stat')).out).toMatch(/^FILE +STATUS/);
  expect(JSON.parse((await ctl('diff', session.name, '--json')).out)).toEqual(diff);
});

test.each([
  [['commit', '-m', 'Done', '--force'], { message: 'Done', force: true }, /^Committed 2 files on /],
  [['commit'], {}, /^Committed/],
  [['push', '--remote', 'up'], { remote: 'up' }, /^Pushed retry-upload \(7f3c9d0e4b5a\) to origin/],
  [
    ['open-pr', '--title', 'T', '--body', 'B', '--draft'],
    { title: 'T', body: 'B', draft: true },
    /^https:\/\/github.com\/ada\/mill\/pull\/7\n$/,
  ],
  [['merge', '--strategy', 'squash'], { strategy: 'squash' }, /^Merged retry-upload into main/],
  [['merge'], { strategy: 'merge' }, /^Merged/],
  [['rebase', '--base', 'main'], { base: 'main' }, /^Rebased retry-upload onto main/],
] as const)('%j sends its options and prints the result', async (args, body, said) => {
  const [verb, ...flags] = args;
  const { code, out, err } = await ctl(verb, session.name, ...flags);
  expect([code, err]).toEqual([0, '']);
  expect(out).toMatch(said);
  expect(sent()).toEqual(body);
  const json = await ctl(verb, session.id, ...flags, '--json');
  expect(JSON.parse(json.out)).toMatchObject({ branch: 'retry-upload' });
});

test('merge: a conflict names the files', async () => {
  const detail = 'Merging topic into main conflicts in src/upload.ts.';
  const body = {
    type: 'x',
    title: 'x',
    status: 409,
    code: 'MERGE_CONFLICT',
    detail,
    error: detail,
  };
  daemon.routes.set(`POST ${path}:merge`, { status: 409, body });
  const { code, err } = await ctl('merge', session.name);
  expect([code, err]).toEqual([1, `ctl: ${detail}\n`]);
  const json = await ctl('merge', session.name, '--json');
  expect(JSON.parse(json.err).error.code).toBe('MERGE_CONFLICT');
});

test('merge: an unknown strategy is a usage error', async () => {
  expect((await ctl('merge', session.name, '--strategy', 'octopus')).code).toBe(2);
});
