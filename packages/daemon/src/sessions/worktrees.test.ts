import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  addWorktree,
  removeWorktree,
  repoFacts,
  slugOf,
  type Worktree,
  worktreeTargetFor,
} from './worktrees.js';

const environment = {
  PATH: process.env['PATH'],
  GIT_CONFIG_GLOBAL: '/dev/null',
  HOME: '/nowhere',
};
const parts = { clock: systemClock, environment, runsHooks: false };
let home: string;
let repo: string;

function git(directory: string, ...args: string[]): string {
  const who = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org'];
  // Else each commit looks in a process of its own whether there is something to collect.
  who.push('-c', 'maintenance.auto=false');
  const env = { ...environment, GIT_CONFIG_NOSYSTEM: '1' };
  return execFileSync('git', [...who, ...args], { cwd: directory, env, encoding: 'utf8' }).trim();
}

beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'mr-worktrees-')));
  repo = join(home, 'mill');
  mkdirSync(repo);
  git(repo, 'init', '--quiet', '--initial-branch=main');
  git(repo, 'commit', '--quiet', '--allow-empty', '--message=first');
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function add(branch: string | undefined, more: object = {}) {
  const wanted = {
    repo: (await repoFacts(parts, repo))!,
    branch,
    name: 'Fix it',
    suffix: 'abc123',
    fallback: join(home, 'data', 'worktrees'),
    isUsed: () => false,
    ...more,
  };
  return addWorktree(parts, wanted);
}

async function added(branch: string | undefined): Promise<Worktree> {
  const made = await add(branch);
  if ('refusal' in made) throw new Error(made.refusal);
  return made;
}

const remove = ({ path, mark }: Worktree) => removeWorktree(parts, path, mark);

test('a repository is known from any directory inside, a worktree of it too', async () => {
  expect(await repoFacts(parts, home)).toBeUndefined();
  mkdirSync(join(repo, 'deep'));
  expect(await repoFacts(parts, join(repo, 'deep'))).toEqual({
    top: repo,
    root: repo,
    branch: 'main',
    hasCommits: true,
  });
  const { path } = await added('side');
  expect(await repoFacts(parts, path)).toMatchObject({ top: path, root: repo, branch: 'side' });
  git(path, 'checkout', '--quiet', '--detach');
  expect(await repoFacts(parts, path)).toMatchObject({ branch: null });
});

test('a branch that is checked out needs no worktree when none is wanted', async () => {
  const wants = async (request: object) =>
    (await worktreeTargetFor(parts, { prompt: 'x', cwd: repo, ...request })).wantsWorktree;
  expect(await wants({ branch: 'main', worktree: false })).toBe(false);
  expect(await wants({ branch: 'main' })).toBe(true);
  await expect(wants({ branch: 'other', worktree: false })).rejects.toThrow(
    /`branch` must be checked out in .*, where main is checked out; leave out `worktree: false`/,
  );
  expect(await wants({ worktree: false })).toBe(false);
});

test('a branch is made, taken as it is, or taken from the remote', async () => {
  const fresh = await added('feature/new');
  expect(fresh.path).toBe(join(home, 'mill-worktrees', 'feature-new'));
  expect(fresh.mark).toMatchObject({ madeBranch: true, branch: 'feature/new', baseBranch: 'main' });
  git(repo, 'branch', 'there');
  expect((await added('there')).mark.madeBranch).toBe(false);
  const clone = join(home, 'clone');
  git(home, 'clone', '--quiet', repo, clone);
  repo = clone;
  const tracked = await added('there');
  expect(git(tracked.path, 'rev-parse', '--abbrev-ref', '@{upstream}')).toBe('origin/there');
});

test('without a branch one is named after the session, and never taken twice', async () => {
  expect((await added(undefined)).mark.branch).toBe('Fix-it');
  const second = await added(undefined);
  expect(second.mark.branch).toBe('Fix-it-abc123');
  expect(existsSync(second.path)).toBe(true);
});

test('what a killed daemon left is made again, and nothing in it is lost', async () => {
  const path = `${repo}-worktrees/x`;
  writeFileSync(join(repo, 'a.txt'), 'a');
  writeFileSync(join(repo, '.gitignore'), '*.log');
  git(repo, 'add', '.');
  git(repo, 'commit', '--quiet', '--message=files');
  git(repo, 'branch', 'x');
  for (const left of ['--no-checkout', '--lock', '--checkout']) {
    git(repo, 'worktree', 'add', '--quiet', left, path, 'x');
    expect((await added('x')).path).toBe(path);
    expect(existsSync(join(path, 'a.txt'))).toBe(true);
    git(repo, 'worktree', 'remove', path);
  }
  git(repo, 'worktree', 'add', '--quiet', '--no-checkout', path, 'x');
  writeFileSync(join(path, 'notes.txt'), 'by a person, before any checkout');
  expect(await add('x')).toMatchObject({ field: 'branch' });
  expect(existsSync(join(path, 'notes.txt'))).toBe(true);
  git(repo, 'worktree', 'remove', '--force', path);
  await added('x');
  const isUsed = (used: string) => used === path;
  expect(await add('x', { isUsed })).toMatchObject({ field: 'branch' });
  writeFileSync(join(path, 'run.log'), 'ignored');
  expect(await add('x')).toMatchObject({ field: 'branch' });
  rmSync(join(path, 'run.log'));
  writeFileSync(join(path, 'a.txt'), 'changed');
  expect(await add('x')).toMatchObject({ field: 'branch' });
});

test('what cannot be checked out is refused, and leaves nothing behind', async () => {
  expect(await add('main')).toMatchObject({ field: 'branch' });
  expect(await add('a..b')).toMatchObject({ field: 'branch' });
  expect(existsSync(`${repo}-worktrees`)).toBe(false);
  const empty = join(home, 'empty');
  mkdirSync(empty);
  git(empty, 'init', '--quiet');
  const facts = await repoFacts(parts, empty);
  expect(await add('x', { repo: facts })).toMatchObject({ field: 'repo' });
});

test('a clean worktree goes, with its branch when nothing was done on it', async () => {
  const made = await added('x');
  expect(await remove(made)).toEqual({ isRetained: false });
  expect(existsSync(`${repo}-worktrees`)).toBe(false);
  expect(git(repo, 'branch', '--list', 'x')).toBe('');
});

test('changes, new files and commits are never lost', async () => {
  const made = await added('x');
  writeFileSync(join(made.path, 'a.txt'), 'a');
  expect(await remove(made)).toMatchObject({ isRetained: true });
  git(made.path, 'add', '.');
  expect(await remove(made)).toMatchObject({ isRetained: true });
  git(made.path, 'commit', '--quiet', '--message=work');
  expect(await remove(made)).toEqual({ isRetained: true, reason: 'the branch x is not merged' });
  git(repo, 'merge', '--quiet', 'x');
  expect(await remove(made)).toEqual({ isRetained: false });
  expect(git(repo, 'branch', '--list', 'x')).toContain('x');
});

test('what is pushed is not lost either', async () => {
  const origin = join(home, 'origin.git');
  git(home, 'clone', '--quiet', '--bare', repo, origin);
  git(repo, 'remote', 'add', 'origin', origin);
  const made = await added('x');
  git(made.path, 'commit', '--quiet', '--allow-empty', '--message=work');
  expect(await remove(made)).toMatchObject({ isRetained: true });
  git(made.path, 'push', '--quiet', 'origin', 'x');
  expect(await remove(made)).toEqual({ isRetained: false });
});

test('a worktree that somebody removed is gone', async () => {
  const made = await added('x');
  rmSync(made.path, { recursive: true });
  expect(await remove(made)).toEqual({ isRetained: false });
});

test('where no directory can be made beside the repository it goes to the data', async () => {
  writeFileSync(`${repo}-worktrees`, 'in the way');
  const made = await added('x');
  expect(made.path).toBe(join(home, 'data', 'worktrees', 'mill', 'x'));
  expect(await remove(made)).toEqual({ isRetained: false });
});

test.each([
  ['retry-upload', 'retry-upload'],
  ['feature/x y', 'feature-x-y'],
  ['  ..', 'agent'],
  ['Füße & more…', 'Fu-e-more'],
  ['a.lock', 'agent'],
  ['x'.repeat(80), 'x'.repeat(60)],
])('%j makes the name %j', (text, slug) => {
  expect(slugOf(text)).toBe(slug);
});
