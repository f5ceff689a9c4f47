import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ComparisonCache, Round } from '../branches/inspection.js';
import { programCalls } from '../branches/programs.js';
import { addWorktree, removeWorktree, repoFacts } from '../sessions/worktrees.js';
import { runGit } from './run-git.js';

let home: string;
let repo: string;
/** Every command that the repository names leaves a line here. */
let trace: string;

const environment = () => ({ PATH: process.env['PATH'], HOME: home });

function git(cwd: string, ...args: string[]): string {
  const who = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org'];
  const quiet = ['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false'];
  const env = { ...environment(), GIT_CONFIG_NOSYSTEM: '1' };
  return execFileSync('git', [...who, ...quiet, ...args], { cwd, env, encoding: 'utf8' }).trim();
}

const hooks = ['post-checkout', 'post-index-change', 'reference-transaction', 'pre-auto-gc'];

/** A repository whose config names a command wherever git lets it. */
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'mr-git-')));
  repo = join(home, 'mill');
  trace = join(home, 'trace');
  mkdirSync(repo);
  git(repo, 'init', '--quiet', '--initial-branch=main');
  writeFileSync(join(repo, 'wheel.txt'), 'wood\n');
  writeFileSync(join(repo, '.gitattributes'), '*.txt filter=evil diff=evil\n*.md filter=a=b\n');
  writeFileSync(join(repo, 'read.md'), 'words\n');
  git(repo, 'add', '.');
  git(repo, 'commit', '--quiet', '--message=first');
  git(repo, 'checkout', '--quiet', '-b', 'ahead');
  writeFileSync(join(repo, 'wheel.txt'), 'iron\n');
  git(repo, 'commit', '--quiet', '--all', '--message=work');
  git(repo, 'checkout', '--quiet', 'main');
  git(repo, 'commit', '--quiet', '--allow-empty', '--message=other');
  const evil = join(home, 'evil');
  writeFileSync(evil, `#!/bin/sh\necho "$0 $*" >> '${trace}'\ncat\n`);
  chmodSync(evil, 0o755);
  for (const [key, value] of [
    ['core.fsmonitor', evil],
    ['core.sshCommand', evil],
    ['core.pager', evil],
    ['core.editor', evil],
    ['core.gitProxy', evil],
    ['core.askPass', evil],
    ['credential.helper', `!${evil}`],
    ['diff.external', evil],
    ['diff.evil.command', evil],
    ['diff.evil.textconv', evil],
    ['gpg.program', evil],
    ['log.showSignature', 'true'],
    ['remote.origin.url', `ext::${evil}`],
    ['remote.origin.promisor', 'true'],
    ['protocol.ext.allow', 'always'],
  ] as const) {
    git(repo, 'config', key, value);
  }
  // In a file of its own, which the config includes; and a name that `-c` could not carry.
  const included = join(home, 'included');
  const filter = `clean = ${evil}\nsmudge = ${evil}\nprocess = ${evil}\nrequired = true\n`;
  writeFileSync(included, `[filter "evil"]\n${filter}[filter "a=b"]\n${filter}`);
  git(repo, 'config', 'include.path', included);
  for (const hook of hooks) {
    const file = join(repo, '.git', 'hooks', hook);
    mkdirSync(join(repo, '.git', 'hooks'), { recursive: true });
    writeFileSync(file, `#!/bin/sh\necho ${hook} >> '${trace}'\n`);
    chmodSync(file, 0o755);
  }
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const traced = () => (existsSync(trace) ? readFileSync(trace, 'utf8') : '');

async function made(parts: Parameters<typeof addWorktree>[0], branch: string) {
  const facts = (await repoFacts(parts, repo))!;
  const wanted = {
    repo: facts,
    branch,
    name: branch,
    suffix: 'x',
    fallback: join(home, 'w'),
    isUsed: () => false,
  };
  const worktree = await addWorktree(parts, wanted);
  if ('refusal' in worktree) throw new Error(worktree.refusal);
  return worktree;
}

test('git: a repository runs no command at a spawn, a listing or a deletion', async () => {
  const parts = { clock: systemClock, environment: environment(), runsHooks: false };
  const { path, mark } = await made(parts, 'side');
  expect(readFileSync(join(path, 'wheel.txt'), 'utf8')).toBe('wood\n');
  expect(traced()).toBe('');

  const { signal } = new AbortController();
  const call = programCalls({ ...parts, signal });
  const session = { worktree: path, workdir: path, repo, branch: 'side', status: 'idle', pid: 1 };
  const { status } = await new Round(call, new ComparisonCache()).inspect(session as never);
  expect(status).toMatchObject({ branch: 'side', base: 'main', ahead: 0, behind: 0 });
  expect(traced()).toBe('');

  writeFileSync(join(path, 'wheel.txt'), 'iron\n');
  expect(await removeWorktree(parts, path, mark)).toMatchObject({
    isRetained: true,
    reason: 'the worktree has uncommitted changes',
  });
  writeFileSync(join(path, 'wheel.txt'), 'wood\n');
  writeFileSync(join(path, 'new'), '');
  expect(await removeWorktree(parts, path, mark)).toMatchObject({ isRetained: true });
  rmSync(join(path, 'new'));
  mkdirSync(join(path, 'empty'));
  expect(await removeWorktree(parts, path, mark)).toEqual({ isRetained: false });
  expect(existsSync(path)).toBe(false);
  expect(traced()).toBe('');
});

test('git: comparing a branch that has commits runs no command', async () => {
  const parts = { clock: systemClock, environment: environment(), runsHooks: false };
  const { path } = await made(parts, 'ahead');
  const { signal } = new AbortController();
  const session = { worktree: path, workdir: path, repo, branch: 'ahead', status: 'idle', pid: 1 };
  const call = programCalls({ ...parts, signal });
  const { status } = await new Round(call, new ComparisonCache()).inspect(session as never);
  expect(status).toMatchObject({ ahead: 1, behind: 1, merged: false });
  expect(traced()).toBe('');
});

test('git: hooks and filters of a repository run where worktrees.hooks allows them', async () => {
  git(repo, 'config', '--unset', 'include.path');
  const parts = { clock: systemClock, environment: environment(), runsHooks: true };
  await made(parts, 'side');
  expect(traced()).toContain('post-checkout');
});

test('git is not run in a directory without a name, which would be that of the daemon', async () => {
  const run = { clock: systemClock, environment: environment(), cwd: '', timeoutMs: 10_000 };
  await expect(runGit(run, ['rev-parse', 'HEAD'])).rejects.toThrow('the name of a directory');
});
