import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { CTL, startCtl, type Ended } from './run-ctl.js';

const again = inCampaign('process');

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'ctl-git-'));
  writeFileSync(
    join(home, '.gitconfig'),
    '[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n',
  );
  git(home, 'init', '-q', '--bare', 'origin.git');
  git(home, 'clone', '-q', 'origin.git', 'mill');
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const env = () => ({ HOME: home, PATH: process.env['PATH'] ?? '' });

function git(cwd: string, ...args: string[]): string {
  const stdio = ['ignore', 'pipe', 'ignore'] as ['ignore', 'pipe', 'ignore'];
  return execFileSync('git', args, { cwd, env: env(), encoding: 'utf8', stdio });
}

const mill = (repo = 'mill') => join(home, repo);
const ctlGit = (args: string[], cwd = mill(), more = {}): Promise<Ended> =>
  startCtl(['git', ...args], { ...env(), ...more }, { cwd, input: '' }).ended;

function ledger(): Record<string, unknown>[] {
  const file = join(home, '.local', 'share', 'millrace', 'savings', 'ledger.jsonl');
  return readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function writeFiles(repo: string, text: string, count = 80): void {
  mkdirSync(join(repo, 'src'), { recursive: true });
  for (let at = 0; at < count; at++) writeFileSync(join(repo, 'src', `part-${at}.ts`), text);
}

test('commit, push and sync do what git does, and say it in short', async () => {
  writeFiles(mill(), 'one\n');
  git(mill(), 'add', '.');
  const committed = await ctlGit(['commit', '-m', 'Add the parts -- all of them']);
  expect([committed.code, committed.err]).toEqual([0, '']);
  const hash = git(mill(), 'rev-parse', '--short', 'HEAD').trim();
  expect(committed.out.split('\n').slice(0, 3)).toEqual([
    `[main (root-commit) ${hash}] Add the parts -- all of them`,
    ' 80 files changed, 80 insertions(+)',
    '... 80 lines omitted',
  ]);
  expect(git(mill(), 'log', '-1', '--format=%s').trim()).toBe('Add the parts -- all of them');

  const pushed = await ctlGit(['push', '--set-upstream', 'origin', 'main']);
  expect(pushed.code).toBe(0);
  expect(pushed.out).toContain(' * [new branch]      main -> main\n');
  expect(git(join(home, 'origin.git'), 'rev-parse', '--short', 'main').trim()).toBe(hash);

  git(home, 'clone', '-q', 'origin.git', 'other');
  writeFiles(mill('other'), 'two\n');
  git(mill('other'), 'commit', '-qam', 'Change the parts');
  git(mill('other'), 'push', '-q');
  const synced = await ctlGit(['sync']);
  expect(synced.code).toBe(0);
  expect(synced.out).toContain('Fast-forward\n... 80 lines omitted\n 80 files changed, ');
  expect(git(mill(), 'log', '-1', '--format=%s').trim()).toBe('Change the parts');

  const lines = ledger();
  expect(lines.map(({ feature, repo }) => [feature, repo])).toEqual([
    ['git', mill()],
    ['git', mill()],
    ['git', mill()],
  ]);
  const [first] = lines as { raw_bytes: number; kept_bytes: number }[];
  expect(first!.kept_bytes).toBe(Buffer.byteLength(committed.out));
  expect(first!.kept_bytes).toBeLessThan(first!.raw_bytes / 4);
  const log = /; full log: (.+)\n$/.exec(committed.out)![1]!;
  expect(readFileSync(log, 'utf8')).toContain(' create mode 100644 src/part-79.ts\n');
});

test('what git refuses is shown whole, with its exit code', async () => {
  writeFiles(mill(), 'one\n', 2);
  git(mill(), 'add', '.');
  git(mill(), 'commit', '-qm', 'one');
  git(mill(), 'push', '-q', '-u', 'origin', 'main');
  const nothing = await ctlGit(['commit', '-m', 'again']);
  expect([nothing.code, nothing.out]).toEqual([1, expect.stringContaining('nothing to commit')]);

  git(home, 'clone', '-q', 'origin.git', 'other');
  for (const repo of [mill(), mill('other')]) {
    writeFiles(repo, `of ${repo}\n`, 1);
    git(repo, 'commit', '-qam', `change in ${repo}`);
  }
  git(mill('other'), 'push', '-q');
  const rejected = await ctlGit(['push']);
  expect([rejected.code, rejected.out]).toEqual([1, expect.stringContaining('! [rejected]')]);

  const unsure = await ctlGit(['sync']);
  expect([unsure.code, unsure.out]).toEqual([
    128,
    expect.stringContaining('fatal: Need to specify how to reconcile divergent branches'),
  ]);
  const conflict = await ctlGit(['sync', '--rebase']);
  expect(conflict.code).toBe(1);
  expect(conflict.out).toContain('CONFLICT (content): Merge conflict in src/part-0.ts');
  const strange = await ctlGit(['push', '--no-such-option']);
  expect([strange.code, strange.out]).toEqual([129, expect.stringContaining('no-such-option')]);
});

again('sync rebases or merges as git is configured', async () => {
  writeFiles(mill(), 'one\n', 3);
  git(mill(), 'add', '.');
  git(mill(), 'commit', '-qm', 'one');
  git(mill(), 'push', '-q', '-u', 'origin', 'main');
  git(home, 'clone', '-q', 'origin.git', 'other');
  git(home, 'clone', '-q', 'origin.git', 'third');
  writeFileSync(join(mill('other'), 'theirs'), '');
  git(mill('other'), 'add', '.');
  git(mill('other'), 'commit', '-qm', 'theirs');
  git(mill('other'), 'push', '-q');
  for (const [repo, setting, parents] of [
    ['mill', 'true', 1],
    ['third', 'false', 2],
  ] as const) {
    writeFileSync(join(mill(repo), 'ours'), '');
    git(mill(repo), 'add', '.');
    git(mill(repo), 'commit', '-qm', 'ours');
    git(mill(repo), 'config', 'pull.rebase', setting);
    const { code } = await ctlGit(['sync'], mill(repo), { GIT_MERGE_AUTOEDIT: 'no' });
    const names = git(mill(repo), 'log', '-1', '--format=%p').trim().split(' ');
    expect([repo, code, names.length]).toEqual([repo, 0, parents]);
  }
});

again('a hook that fails is heard, and its success is not', async () => {
  writeFiles(mill(), 'one\n', 1);
  git(mill(), 'add', '.');
  const hook = join(mill(), '.git', 'hooks', 'pre-commit');
  const chatter = 'for i in $(seq 300); do echo " ✓ case $i"; done';
  writeFileSync(hook, `#!/bin/sh\n${chatter}\necho "not ok 301 - turns"\nexit 1\n`);
  chmodSync(hook, 0o755);
  const failed = await ctlGit(['commit', '-m', 'one']);
  expect([failed.code, failed.out]).toEqual([1, expect.stringContaining('not ok 301 - turns\n')]);
  expect(failed.out).not.toContain('case 7');
  writeFileSync(hook, `#!/bin/sh\n${chatter}\n`);
  const passed = await ctlGit(['commit', '-m', 'one']);
  expect(passed.code).toBe(0);
  expect(passed.out).toContain('] one\n');
  expect(passed.out).not.toContain('case 7');
});

test('usage mistakes are reported by ctl', async () => {
  expect(await ctlGit(['comit'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('commit'),
  });
  expect((await ctlGit([])).code).toBe(2);
  const { PATH: _, ...rest } = env();
  const nowhere = await startCtl(
    ['git', 'push'],
    { ...rest, PATH: '/nonexistent' },
    { cwd: home, input: '' },
  ).ended;
  expect(nowhere).toMatchObject({ code: 127, err: 'ctl: there is no program "git"\n' });
});

const hasScript = spawnSync('script', ['--version']).status === 0;

test.skipIf(!hasScript)(
  'on a terminal an editor has the screen (needs the program script of util-linux)',
  () => {
    writeFiles(mill(), 'one\n', 1);
    git(mill(), 'add', '.');
    const editor = join(home, 'editor');
    const seen = join(home, 'seen');
    const test = '[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo "on a terminal" >';
    writeFileSync(editor, `#!/bin/sh\n${test} ${seen}\necho "From the editor" > "$1"\n`);
    chmodSync(editor, 0o755);
    const command = `'${process.execPath}' '${CTL}' git commit`;
    const { status, stdout } = spawnSync('script', ['-qec', command, '/dev/null'], {
      cwd: mill(),
      env: { ...env(), GIT_EDITOR: editor },
      encoding: 'utf8',
    });
    expect([status, stdout]).toEqual([0, expect.stringContaining('] From the editor')]);
    expect(readFileSync(seen, 'utf8')).toBe('on a terminal\n');
    expect(git(mill(), 'log', '-1', '--format=%s').trim()).toBe('From the editor');
  },
);
