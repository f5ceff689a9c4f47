import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../../test/support/campaign.js';
import type { Session } from '../sessions/port.js';
import { memorySessions } from '../sessions/sessions.test-support.js';
import { ComparisonCache, Round } from './inspection.js';
import { programCalls } from './programs.js';
import { Workshop, type Repository } from './repositories.test-support.js';

const again = inCampaign('cases');

let shop: Workshop;
let memory: ComparisonCache;
beforeEach(async () => {
  shop = await Workshop.open();
  memory = new ComparisonCache();
});
afterEach(() => shop.remove());

function sessionIn(at: Repository, partial: Partial<Session> = {}): Session {
  return memorySessions().add({ workdir: at.path, repo: at.path, branch: null, ...partial });
}

async function inspect(at: Repository | Session, clock: Clock = systemClock) {
  const { signal } = new AbortController();
  const call = programCalls({ clock, environment: shop.environment, signal });
  const session = 'id' in at ? at : sessionIn(at);
  return (await new Round(call, memory).inspect(session)).status;
}

describe('against its base', () => {
  test('commits ahead and behind are counted', async () => {
    const mill = shop.repository();
    const work = mill.worktree('retry-upload');
    expect(await inspect(work)).toMatchObject({
      branch: 'retry-upload',
      base: 'main',
      ahead: 0,
      behind: 0,
      merged: false,
      error: null,
    });
    work.commit('one');
    work.commit('two');
    for (const each of ['a', 'b', 'c']) mill.commit(each);
    expect(await inspect(work)).toMatchObject({ ahead: 2, behind: 3, merged: false, error: null });
    // The base itself is not merged into itself.
    expect(await inspect(mill)).toMatchObject({
      branch: 'main',
      ahead: 0,
      behind: 0,
      merged: false,
    });
  });

  test('the base is what origin calls its own, and stands where origin stands', async () => {
    const upstream = shop.repository('upstream', 'trunk');
    const mill = shop.clone(upstream, 'mill');
    mill.git('branch', 'main');
    const work = mill.worktree('feature');
    work.commit('one');
    // What is only here does not count: others cannot have it.
    mill.commit('local');
    expect(await inspect(work)).toMatchObject({ base: 'trunk', ahead: 1, behind: 0 });
    upstream.commit('new');
    mill.git('fetch', '--quiet');
    expect(await inspect(work)).toMatchObject({ base: 'trunk', ahead: 1, behind: 1 });
    expect(await inspect(mill)).toMatchObject({
      branch: 'trunk',
      ahead: 1,
      behind: 1,
      merged: false,
    });
  });

  test('without origin/HEAD it is main or master, and unknown without those', async () => {
    const old = shop.repository('old', 'master');
    expect(await inspect(old.worktree('one'))).toMatchObject({ base: 'master', ahead: 0 });
    const odd = shop.repository('odd', 'develop');
    const status = await inspect(odd.worktree('two'));
    expect(status).toMatchObject({ branch: 'two', base: null, ahead: null, behind: null });
    expect(status).toMatchObject({ merged: null, ci: { state: 'none' } });
    expect(status.error).toBe('no base branch: there is no origin/HEAD, no main and no master');
  });

  test('no branch, no commit and no repository are unknown, each in words', async () => {
    const mill = shop.repository();
    mill.git('checkout', '--quiet', '--detach');
    const nothing = { ahead: null, behind: null, merged: null, ci: { state: null } };
    expect(await inspect(mill)).toMatchObject({
      ...nothing,
      branch: null,
      base: 'main',
      error: 'no branch is checked out',
    });
    expect(await inspect(sessionIn(mill, { branch: 'gone' }))).toMatchObject({
      ...nothing,
      branch: 'gone',
      error: 'the branch gone has no commit',
    });
    const bare = join(shop.directory, 'bare');
    mkdirSync(bare);
    const { error, base } = await inspect(sessionIn(mill, { workdir: bare, repo: null }));
    expect(error).toMatch(/^git: fatal: not a git repository/);
    expect(base).toBeNull();
  });

  test('the branch of a worktree that is gone is found in its repository', async () => {
    const mill = shop.repository();
    const work = mill.worktree('docs');
    work.commit('one');
    const session = sessionIn(work, { worktree: work.path, repo: mill.path, branch: 'docs' });
    mill.git('worktree', 'remove', work.path);
    expect(await inspect(session)).toMatchObject({ branch: 'docs', ahead: 1, error: null });
    rmSync(mill.path, { recursive: true });
    expect((await inspect(session)).error).toBe(`${mill.path} no longer exists`);
  });

  test('an agent that moved to another branch is followed; one that ended is not', async () => {
    const mill = shop.repository();
    const work = mill.worktree('first');
    work.git('checkout', '--quiet', '-b', 'second');
    const session = sessionIn(work, { worktree: work.path, branch: 'first' });
    expect((await inspect(session)).branch).toBe('second');
    const shared = sessionIn(mill, { branch: 'first', status: 'done' });
    expect((await inspect(shared)).branch).toBe('first');
  });
});

describe('merged is', () => {
  let mill: Repository;
  let work: Repository;
  beforeEach(() => {
    mill = shop.repository();
    work = mill.worktree('feature');
  });
  const merged = async () => (await inspect(work)).merged;

  test('not a branch that has nothing of its own, however far the base went on', async () => {
    expect(await merged()).toBe(false);
    mill.commit('a');
    mill.commit('b');
    expect(await merged()).toBe(false);
    work.git('merge', '--quiet', '--ff-only', 'main');
    expect(await merged()).toBe(false);
  });

  again('not a branch whose own commits were taken back', async () => {
    work.commit('one');
    work.git('reset', '--quiet', '--hard', 'main');
    expect(await inspect(work)).toMatchObject({ ahead: 0, merged: false });
    mill.commit('a');
    expect(await merged()).toBe(false);
    // Nor one that was brought up to date and never had any.
    const empty = mill.worktree('empty');
    mill.commit('b');
    empty.git('rebase', '--quiet', 'main');
    expect(await inspect(empty)).toMatchObject({ ahead: 0, merged: false });
  });

  test('a branch that was brought up to date by a rebase and then merged', async () => {
    work.commit('one');
    mill.commit('a');
    work.git('rebase', '--quiet', 'main');
    expect(await merged()).toBe(false);
    mill.git('merge', '--quiet', '--ff-only', 'feature');
    expect(await merged()).toBe(true);
  });

  test('a branch that was merged by a commit or by going forward', async () => {
    work.commit('one');
    expect(await merged()).toBe(false);
    mill.git('merge', '--quiet', '--ff-only', 'feature');
    expect(await merged()).toBe(true);
    work.commit('two');
    expect(await merged()).toBe(false);
    mill.commit('other');
    mill.git('merge', '--quiet', '--no-ff', '--no-edit', 'feature');
    expect(await merged()).toBe(true);
  });

  again('a branch of somebody else that was merged by a commit', async () => {
    work.commit('one');
    mill.commit('other');
    mill.git('merge', '--quiet', '--no-ff', '--no-edit', 'feature');
    const copy = shop.clone(mill, 'copy');
    copy.git('fetch', '--quiet', 'origin', 'feature:feature');
    copy.git('checkout', '--quiet', 'feature');
    expect(await inspect(copy)).toMatchObject({ branch: 'feature', ahead: 0, merged: true });
  });

  test('a branch that was squashed, and it stays so when the base goes on', async () => {
    work.commit('one', 'a file with [odd] *name*.txt');
    work.commit('two');
    mill.commit('other');
    expect(await merged()).toBe(false);
    mill.git('merge', '--squash', '--quiet', 'feature');
    mill.git('commit', '--quiet', '--message', 'feature (#1)');
    expect(await inspect(work)).toMatchObject({ ahead: 2, merged: true });
    mill.commit('changed since', 'two.txt');
    expect(await merged()).toBe(true);
    work.commit('three');
    expect(await merged()).toBe(false);
  });
});

describe('CI', () => {
  let work: Repository;
  let head: string;
  beforeEach(() => {
    work = shop.repository().worktree('feature');
    head = work.commit('one');
  });
  const run = (workflowName: string, status: string, conclusion = '', id = 1) => ({
    name: 'ignored',
    workflowName,
    status,
    conclusion,
    url: `https://ci.example.org/runs/${id}`,
  });

  test('of all runs of the head commit the worst counts', async () => {
    const done = (conclusion: string) => run(conclusion, 'completed', conclusion);
    const cases: [object[], string | null, string | null][] = [
      [[], 'none', null],
      [[done('success'), done('skipped'), done('neutral')], 'success', 'success'],
      [[done('success'), run('slow', 'in_progress')], 'pending', 'slow'],
      [[done('success'), run('later', 'queued')], 'pending', 'later'],
      [[run('slow', 'in_progress'), done('failure'), done('success')], 'failure', 'failure'],
      [[done('timed_out')], 'failure', 'timed_out'],
      [[done('startup_failure')], 'failure', 'startup_failure'],
      [[done('action_required')], 'pending', 'action_required'],
      [[done('cancelled')], 'none', null],
      [[done('cancelled'), done('success')], 'success', 'success'],
      [[done('success'), done('what_is_this')], null, 'what_is_this'],
    ];
    for (const [runs, state, workflow] of cases) {
      shop.runs(...runs);
      const { ci, checks, error } = await inspect(work);
      expect([ci.state, ci.workflow, checks.length, error]).toEqual([
        state,
        workflow,
        runs.length,
        null,
      ]);
    }
  });

  test('a check has the name, the state and the page of its run', async () => {
    shop.runs(run('test', 'completed', 'failure', 42), { status: 'queued', url: 'nowhere' });
    const { ci, checks } = await inspect(work);
    const url = 'https://ci.example.org/runs/42';
    expect(ci).toEqual({ state: 'failure', workflow: 'test', url });
    expect(checks).toEqual([
      { name: 'test', state: 'failure', url },
      { name: 'run', state: 'pending', url: null },
    ]);
    expect(shop.ghCalls.at(-1)).toContain(`run list --commit ${head} `);
  });

  test('a failure of gh leaves CI unknown, and everything else is reported', async () => {
    const ours = { branch: 'feature', base: 'main', ahead: 1, behind: 0, merged: false };
    const unknown = { ci: { state: null, workflow: null, url: null }, checks: [] };
    const cases: [() => void, RegExp][] = [
      [() => shop.without('gh'), /^gh is not installed$/],
      [() => shop.gh('echo "please log in" >&2; exit 4'), /^gh: please log in$/],
      [() => shop.gh('exit 3'), /^gh exited with code 3$/],
      [() => shop.gh('kill -9 $$'), /^gh was killed$/],
      [() => shop.gh('echo not json'), /^gh answered with no list of runs$/],
      [() => shop.gh('echo "{}"'), /^gh answered with no list of runs$/],
      [() => shop.gh('echo "[1]"'), /^gh answered with no list of runs$/],
      [() => shop.program('gh', '\u0000'), /^gh/],
    ];
    for (const [prepare, error] of cases) {
      prepare();
      const status = await inspect(work);
      expect(status).toMatchObject({ ...ours, ...unknown });
      expect(status.error).toMatch(error);
    }
  });
});

/** Ten seconds are over as soon as a program says that it hangs: no quick one is cut short. */
function impatient(isOver: () => boolean, limits: number[] = []): Clock {
  return {
    ...systemClock,
    after: (delayMs, run) => {
      limits.push(delayMs);
      if (delayMs < 10_000) return systemClock.after(delayMs, run);
      const looking = setInterval(() => isOver() && (clearInterval(looking), run()), 20);
      return { cancel: () => clearInterval(looking) };
    },
  };
}

describe('a program that takes too long', () => {
  test('gh is given up after ten seconds, for all branches of this round', async () => {
    const mill = shop.repository();
    const [first, second] = ['one', 'two'].map((name) => mill.worktree(name));
    second!.commit('more');
    // So that git has nothing to do any more while gh hangs.
    for (const each of [first!, second!]) await inspect(each);
    const before = shop.ghCalls.length;
    shop.gh(shop.hang);
    const { signal } = new AbortController();
    const limits: number[] = [];
    const clock = impatient(() => shop.hasHung(), limits);
    const round = new Round(programCalls({ clock, environment: shop.environment, signal }), memory);
    const slow = { ci: { state: null }, error: 'gh took longer than 10 seconds', ahead: 0 };
    expect((await round.inspect(sessionIn(first!))).status).toMatchObject(slow);
    const after = await round.inspect(sessionIn(second!));
    expect(after.status).toMatchObject({ ...slow, ahead: 1 });
    expect(shop.ghCalls).toHaveLength(before + 1);
    expect(limits).toContain(10_000);
  });

  // Each call of git in turn is the one that hangs or fails.
  const commands = [
    'symbolic-ref',
    'for-each-ref',
    'rev-list',
    'merge-base',
    'diff-tree',
    'reflog',
  ];
  const timeoutOf = (command: string) => `a timeout of git ${command} keeps the earlier results`;
  const [first, ...others] = commands;
  test(timeoutOf(first!), () => keepsEarlier(first!));
  for (const command of others) again(timeoutOf(command), () => keepsEarlier(command));

  async function keepsEarlier(command: string): Promise<void> {
    const mill = shop.repository();
    const work = mill.worktree('feature');
    if (command !== 'reflog') work.commit('one');
    mill.commit('other');
    const session = sessionIn(work, { branch: 'feature' });
    const only = (what: string) =>
      shop.program('git', `[ "$1" = ${command} ] && { ${what}; }\nexec git "$@"`);
    only(shop.hang);
    const slow = await inspect(
      session,
      impatient(() => shop.isHanging),
    );
    expect(slow).toMatchObject({ branch: 'feature', merged: null });
    expect(slow.error).toContain('git took longer than 10 seconds');
    only('echo fatal: broken >&2; exit 128');
    memory = new ComparisonCache();
    const failed = await inspect(session);
    expect(failed.branch).toBe('feature');
    // Without these two git only knows less.
    const isOptional = ['merge-base', 'reflog'].includes(command);
    expect(failed).toMatchObject(
      isOptional ? { error: null } : { merged: null, error: 'git: fatal: broken' },
    );
  }

  test('without git only the branch given at spawn is known', async () => {
    const work = shop.repository().worktree('feature');
    shop.without('git');
    expect(await inspect(sessionIn(work, { branch: 'feature' }))).toEqual({
      branch: 'feature',
      base: null,
      ci: { state: null, workflow: null, url: null },
      checks: [],
      ahead: null,
      behind: null,
      merged: null,
      uncommitted: null,
      error: 'git is not installed',
    });
  });
});
