import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inCampaign } from '../../../../test/support/campaign.js';
import { Bench } from './workbench.test-support.js';

const again = inCampaign('cases');

let bench: Bench;
beforeEach(async () => {
  bench = await Bench.open();
});
afterEach(() => bench.close());

const write = (name: string, content: string) => writeFileSync(bench.file(name), content);
const log = (branch: string) => bench.repo.git('log', '--format=%s', branch).split('\n');
const head = (branch: string) => bench.repo.git('rev-parse', branch);
const inBase = (name: string) => readFileSync(join(bench.repo.path, name), 'utf8');

test('commit: takes all changes and new files, with the name of the session by default', async () => {
  write('first.txt', 'changed\n');
  write('new.txt', 'new\n');
  const made = await bench.workbench.commit(bench.session, {});
  expect(made).toEqual({
    session_id: bench.session.id,
    branch: 'topic',
    commit: head('topic'),
    message: 'topic',
    file_count: 2,
  });
  expect(bench.work.git('status', '--porcelain')).toBe('');
  // Nobody told git who commits.
  expect(bench.work.git('log', '-1', '--format=%an %ae')).toBe('Millrace millrace@localhost');
  write('more.txt', 'x\n');
  const message = '# not a comment\n\n-F is no option';
  await bench.workbench.commit(bench.session, { message });
  expect(bench.work.git('log', '-1', '--format=%B')).toBe(message);
  await expect(bench.workbench.commit(bench.session, {})).rejects.toMatchObject({
    code: 'NO_CHANGES',
  });
});

again('commit: the identity of the user is used where git knows it', async () => {
  bench.repo.git('config', 'user.name', 'Grace');
  bench.repo.git('config', 'user.email', 'grace@example.org');
  write('new.txt', 'new\n');
  await bench.workbench.commit(bench.session, {});
  expect(bench.work.git('log', '-1', '--format=%an')).toBe('Grace');
});

test('commit: unresolved conflicts are refused', async () => {
  bench.work.commit('mine', 'first.txt');
  bench.repo.commit('theirs', 'first.txt');
  expect(() => bench.work.git('merge', 'main')).toThrow();
  await expect(bench.workbench.commit(bench.session, {})).rejects.toMatchObject({
    code: 'MERGE_CONFLICT',
    extra: { members: { conflicts: ['first.txt'] } },
  });
});

test('a working agent is refused unless forced', async () => {
  write('new.txt', 'new\n');
  const working = { ...bench.session, status: 'working' as const };
  const refusal = { code: 'SESSION_STATE' };
  const { workbench } = bench;
  expect(() => workbench.commit(working, {})).toThrow(expect.objectContaining(refusal));
  expect(() => workbench.merge(working, {})).toThrow(expect.objectContaining(refusal));
  expect(() => workbench.rebase(working, {})).toThrow(expect.objectContaining(refusal));
  await workbench.commit(working, { force: true });
});

test('merge: a merge commit, and the checkout of the base has the files', async () => {
  const tip = bench.work.commit('mine');
  const before = bench.repo.commit('theirs');
  const merged = await bench.workbench.merge(bench.session, {});
  expect(merged).toMatchObject({ strategy: 'merge', branch: 'topic', base: 'main', before });
  expect(merged.commit).toBe(head('main'));
  expect(bench.repo.git('rev-parse', 'main^1', 'main^2')).toBe(`${before}\n${tip}`);
  expect(log('main')[0]).toBe("Merge branch 'topic'");
  expect(inBase('mine.txt')).toBe('mine\n');
  expect(bench.repo.git('status', '--porcelain')).toBe('');
  await expect(bench.workbench.merge(bench.session, {})).rejects.toMatchObject({
    code: 'NO_CHANGES',
  });
});

test('merge: squash makes one commit', async () => {
  bench.work.commit('one');
  bench.work.commit('two');
  bench.repo.commit('theirs');
  await bench.workbench.merge(bench.session, { strategy: 'squash' });
  expect(log('main')).toEqual(['topic', 'theirs', 'first']);
  expect(bench.repo.git('log', '-1', '--format=%b')).toBe('* one\n* two');
  expect(inBase('two.txt')).toBe('two\n');
});

test('merge: rebase replays the commits with their authors, and the branch follows', async () => {
  bench.work.commit('one');
  bench.work.git('commit', '--quiet', '--amend', '--no-edit', '--author=Bo <bo@x.org>');
  bench.work.commit('two');
  bench.repo.commit('theirs');
  const { commit } = await bench.workbench.merge(bench.session, { strategy: 'rebase' });
  expect(log('main')).toEqual(['two', 'one', 'theirs', 'first']);
  expect(bench.repo.git('log', '-1', '--skip=1', '--format=%an %ae')).toBe('Bo bo@x.org');
  expect([head('topic'), bench.work.git('status', '--porcelain')]).toEqual([commit, '']);
  expect(existsSync(bench.file('theirs.txt'))).toBe(true);
});

test.each(['merge', 'squash', 'rebase'] as const)(
  'merge: %s with a conflict is refused with the files, and nothing changes',
  async (strategy) => {
    bench.work.commit('mine', 'first.txt');
    bench.work.commit('fine');
    bench.repo.commit('theirs', 'first.txt');
    const before = [head('main'), head('topic')];
    await expect(bench.workbench.merge(bench.session, { strategy })).rejects.toMatchObject({
      code: 'MERGE_CONFLICT',
      message: expect.stringContaining('Merging topic into main conflicts in first.txt'),
      extra: { members: { conflicts: ['first.txt'] } },
    });
    expect([head('main'), head('topic')]).toEqual(before);
    for (const each of [bench.repo, bench.work]) {
      expect(each.git('status', '--porcelain')).toBe('');
    }
    expect(bench.repo.git('worktree', 'list').split('\n')).toHaveLength(2);
  },
);

test('merge: uncommitted changes in the workspace or in the base are refused', async () => {
  bench.work.commit('mine');
  const merge = () => bench.workbench.merge(bench.session, {});
  write('new.txt', 'x\n');
  await expect(merge()).rejects.toMatchObject({
    code: 'WORKSPACE_DIRTY',
    message: expect.stringContaining(
      `new.txt. Commit them with \`ctl agent commit ${bench.session.id}\``,
    ),
  });
  await bench.workbench.commit(bench.session, {});
  appendFileSync(join(bench.repo.path, 'first.txt'), 'dirty\n');
  const before = head('main');
  await expect(merge()).rejects.toMatchObject({
    code: 'WORKSPACE_DIRTY',
    message: expect.stringContaining('The checkout of main'),
  });
  expect(head('main')).toBe(before);
  bench.repo.git('checkout', '--', 'first.txt');
  // A new file of the base that the merge would overwrite stays, and so does the base.
  writeFileSync(join(bench.repo.path, 'mine.txt'), 'precious\n');
  await expect(merge()).rejects.toMatchObject({ code: 'GIT_FAILED' });
  expect([head('main'), inBase('mine.txt')]).toEqual([before, 'precious\n']);
});

test('merge: a base that is checked out nowhere is moved', async () => {
  bench.repo.git('branch', 'release');
  bench.work.commit('mine');
  await bench.workbench.merge(bench.session, { base: 'release', message: 'Take mine' });
  expect(log('release')[0]).toBe('Take mine');
  expect(log('main')).toEqual(['first']);
});

test('merge: a base that is no local branch, or the branch itself, is refused', async () => {
  const first = head('main');
  bench.work.commit('mine');
  const merge = (base: string) => bench.workbench.merge(bench.session, { base });
  await expect(merge(first)).rejects.toMatchObject({ code: 'GIT_FAILED' });
  await expect(merge('topic')).rejects.toMatchObject({ code: 'NO_CHANGES' });
  await expect(merge('nope')).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  bench.work.git('checkout', '--quiet', '--detach');
  await expect(merge('main')).rejects.toMatchObject({ code: 'NO_WORKSPACE' });
});

test('merge: two at once of one repository come one after the other', async () => {
  const other = bench.repo.worktree('other');
  const session = bench.agentIn(other, { branch: 'other', name: 'other' });
  bench.work.commit('mine');
  other.commit('its');
  await Promise.all([
    bench.workbench.merge(bench.session, { strategy: 'rebase' }),
    bench.workbench.merge(session, { strategy: 'rebase' }),
  ]);
  expect(log('main').toSorted()).toEqual(['first', 'its', 'mine']);
});

test('rebase: replays the branch on the base; one that is up to date stays', async () => {
  bench.work.commit('one');
  const before = bench.work.commit('two');
  const still = await bench.workbench.rebase(bench.session, {});
  expect(still).toMatchObject({ before, commit: before, commit_count: 0 });
  bench.repo.commit('theirs');
  const moved = await bench.workbench.rebase(bench.session, {});
  expect(moved).toMatchObject({ branch: 'topic', base: 'main', before, commit_count: 2 });
  expect(log('topic')).toEqual(['two', 'one', 'theirs', 'first']);
  expect(bench.work.git('status', '--porcelain')).toBe('');
});

again('rebase: a commit that the base already has is left out', async () => {
  bench.work.commit('one');
  bench.repo.commit('theirs');
  bench.repo.git('cherry-pick', 'topic');
  await bench.workbench.rebase(bench.session, {});
  expect(head('topic')).toBe(head('main'));
});

test('rebase: a conflict or uncommitted changes change nothing', async () => {
  bench.work.commit('fine');
  const before = bench.work.commit('mine', 'first.txt');
  bench.repo.commit('theirs', 'first.txt');
  await expect(bench.workbench.rebase(bench.session, {})).rejects.toMatchObject({
    code: 'MERGE_CONFLICT',
    extra: { members: { conflicts: ['first.txt'] } },
  });
  expect([head('topic'), bench.work.git('status', '--porcelain')]).toEqual([before, '']);
  write('first.txt', 'dirty\n');
  await expect(bench.workbench.rebase(bench.session, {})).rejects.toMatchObject({
    code: 'WORKSPACE_DIRTY',
  });
});

test('no command that the repository names is run', async () => {
  const trace = join(bench.shop.directory, 'trace');
  const evil = `sh -c 'echo ran >> ${trace}; cat'`;
  bench.work.commit('mine');
  bench.repo.commit('theirs', 'first.txt');
  write('.gitattributes', '*.txt filter=evil merge=evil\n');
  write('first.txt', 'first\nmine\n');
  for (const key of [
    'core.fsmonitor',
    'core.editor',
    'filter.evil.clean',
    'filter.evil.smudge',
    'merge.evil.driver',
    'gpg.program',
  ]) {
    bench.repo.git('config', key, evil);
  }
  for (const key of ['commit.gpgSign', 'merge.verifySignatures', 'rebase.autoStash']) {
    bench.repo.git('config', key, 'true');
  }
  const hooks = join(bench.repo.path, '.git', 'hooks');
  mkdirSync(hooks, { recursive: true });
  for (const hook of ['pre-commit', 'commit-msg', 'post-commit', 'post-merge', 'post-rewrite']) {
    writeFileSync(join(hooks, hook), `#!/bin/sh\necho ${hook} >> '${trace}'\n`, { mode: 0o755 });
  }
  await bench.workbench.commit(bench.session, {});
  // The driver of the repository is replaced by git's own merge, which sees the conflict.
  await expect(bench.workbench.rebase(bench.session, {})).rejects.toMatchObject({
    code: 'MERGE_CONFLICT',
  });
  expect(existsSync(trace)).toBe(false);
  // The test's own git runs them.
  bench.repo.git('reset', '--quiet', '--hard', 'HEAD^');
  rmSync(trace);
  await bench.workbench.merge(bench.session, {});
  expect(existsSync(trace)).toBe(false);
});

test('hooks run where worktrees.hooks allows them', async () => {
  const hooks = join(bench.repo.path, '.git', 'hooks');
  mkdirSync(hooks, { recursive: true });
  writeFileSync(join(hooks, 'pre-commit'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  write('new.txt', 'x\n');
  await expect(bench.open(true).commit(bench.session, {})).rejects.toMatchObject({
    code: 'GIT_FAILED',
  });
  await bench.workbench.commit(bench.session, {});
});
