import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Repository } from '../branches/repositories.test-support.js';
import { Bench } from './workbench.test-support.js';

let bench: Bench;
beforeEach(async () => {
  bench = await Bench.open();
});
afterEach(() => bench.close());

const diff = (base?: string) => bench.workbench.diff(bench.session, base);
const write = (name: string, content: string | Uint8Array) =>
  writeFileSync(bench.file(name), content);

test('diff: a workspace without changes has no files', async () => {
  const head = bench.repo.git('rev-parse', 'main');
  expect(await diff()).toEqual({
    session_id: bench.session.id,
    branch: 'topic',
    head,
    base: 'main',
    base_commit: head,
    file_count: 0,
    additions: 0,
    deletions: 0,
    truncated: false,
    files: [],
  });
});

test('diff: commits, uncommitted changes and new files count from the fork, not the tip', async () => {
  bench.work.commit('mine');
  bench.repo.commit('theirs');
  write('first.txt', 'first\nsecond\n');
  write('new.txt', 'one\ntwo\n');
  const shown = await diff();
  expect(shown).toMatchObject({ base: 'main', file_count: 3, additions: 4, deletions: 0 });
  expect(shown.files.map(({ path, status }) => [path, status])).toEqual([
    ['first.txt', 'modified'],
    ['mine.txt', 'added'],
    ['new.txt', 'added'],
  ]);
  expect(shown.files[0]!.hunks).toEqual([
    {
      old_start: 1,
      old_lines: 1,
      new_start: 1,
      new_lines: 2,
      heading: '',
      lines: [' first', '+second'],
    },
  ]);
  // The index of the workspace still lists no new file.
  expect(bench.work.git('status', '--porcelain')).toBe('M first.txt\n?? new.txt');
});

test('diff: binary, renamed, deleted, typed and unterminated files', async () => {
  write('moved.txt', 'a\nb\nc\nd\ne\n');
  write('gone.txt', 'gone\n');
  write('open.txt', 'no newline');
  write('kind.txt', 'a file\n');
  write('run.sh', 'echo\n');
  bench.work.git('add', '.');
  bench.work.git('commit', '--quiet', '--message=start');
  const start = bench.work.git('rev-parse', 'HEAD');
  renameSync(bench.file('moved.txt'), bench.file('there.txt'));
  bench.work.git('add', '--all');
  rmSync(bench.file('gone.txt'));
  write('open.txt', 'still none');
  rmSync(bench.file('kind.txt'));
  symlinkSync('open.txt', bench.file('kind.txt'));
  chmodSync(bench.file('run.sh'), 0o755);
  write('data.bin', new Uint8Array([0, 1, 2, 0, 255]));
  write('empty.txt', '');
  const { files, truncated } = await diff(start);
  expect(truncated).toBe(false);
  const byPath = Object.fromEntries(files.map((file) => [file.path, file]));
  expect(byPath['data.bin']).toMatchObject({ status: 'added', binary: true, hunks: [] });
  expect(byPath['there.txt']).toMatchObject({
    status: 'renamed',
    old_path: 'moved.txt',
    additions: 0,
    hunks: [],
  });
  expect(byPath['gone.txt']).toMatchObject({
    status: 'deleted',
    new_mode: null,
    deletions: 1,
    hunks: [{ lines: ['-gone'] }],
  });
  const note = '\\ No newline at end of file';
  expect(byPath['open.txt']!.hunks[0]!.lines).toEqual(['-no newline', note, '+still none', note]);
  expect(byPath['kind.txt']).toMatchObject({ status: 'type_changed', new_mode: '120000' });
  expect(byPath['kind.txt']!.hunks.map(({ lines }) => lines)).toEqual([
    ['-a file'],
    ['+open.txt', note],
  ]);
  expect(byPath['run.sh']).toMatchObject({ old_mode: '100644', new_mode: '100755', hunks: [] });
  expect(byPath['empty.txt']).toMatchObject({ status: 'added', additions: 0, hunks: [] });
});

test('diff: a change of the same size in the second of the commit is found', async () => {
  const second = 1_700_000_000;
  const setTime = (path: string) => utimesSync(path, second, second);
  bench.work.git('config', 'core.trustctime', 'false');
  write('same.txt', 'before');
  setTime(bench.file('same.txt'));
  bench.work.git('add', '.');
  bench.work.git('commit', '--quiet', '--message=start');
  const start = bench.work.git('rev-parse', 'HEAD');
  setTime(bench.work.git('rev-parse', '--path-format=absolute', '--git-path', 'index'));
  write('same.txt', 'behind');
  setTime(bench.file('same.txt'));
  const { files } = await diff(start);
  expect(files).toMatchObject([{ path: 'same.txt', status: 'modified', additions: 1 }]);
});

test('diff: names with quotes, spaces, line breaks and bytes that are not UTF-8', async () => {
  for (const name of ['a "b".txt', 'müll.txt', 'two\nlines.txt', ' sp ace']) write(name, 'x\n');
  writeFileSync(Buffer.concat([Buffer.from(`${bench.work.path}/caf`), Buffer.from([0xe9])]), 'x\n');
  const { files } = await diff();
  expect(files.map(({ path }) => path).toSorted()).toEqual(
    [' sp ace', '"caf\\351"', 'a "b".txt', 'müll.txt', 'two\nlines.txt'].toSorted(),
  );
});

test('diff: at most 5,000 lines are shown, and the counts are those of all', async () => {
  const lines = (count: number) =>
    Array.from({ length: count }, (_, at) => `line ${at}\n`).join('');
  write('a.txt', lines(4_990));
  write('b.txt', lines(100));
  write('c.txt', lines(7));
  const shown = await diff();
  expect(shown).toMatchObject({ truncated: true, additions: 5_097, file_count: 3 });
  const counts = shown.files.map(({ hunks }) => hunks.flatMap((hunk) => hunk.lines).length);
  expect(counts).toEqual([4_990, 10, 0]);
  expect(shown.files[2]).toMatchObject({ path: 'c.txt', additions: 7 });
});

test('diff: exactly 5,000 lines are not truncated', async () => {
  write('a.txt', 'x\n'.repeat(5_000));
  expect((await diff()).truncated).toBe(false);
});

test('diff: an output larger than the limit is cut, and a very long line too', async () => {
  write('long.txt', `${'x'.repeat(20_000)}\n`);
  const cut = await diff();
  expect(cut.truncated).toBe(true);
  expect(cut.files[0]!.hunks[0]!.lines[0]).toHaveLength(10_000);
  write('long.txt', `${'y'.repeat(6_000_000)}\n`);
  write('small.txt', 'x\n');
  const shown = await diff();
  expect(shown.truncated).toBe(true);
  expect(shown.files.map(({ path }) => path)).toEqual(['long.txt', 'small.txt']);
});

test('diff: ignored files are left out, also when a subdirectory is the workspace', async () => {
  write('.gitignore', 'build/\n');
  mkdirSync(bench.file('build'));
  write('build/out', 'x\n');
  mkdirSync(bench.file('sub'));
  write('sub/in.txt', 'x\n');
  const inside = bench.agentIn({ path: bench.file('sub') });
  const { files } = await bench.workbench.diff(inside, undefined);
  expect(files.map(({ path }) => path)).toEqual(['.gitignore', 'sub/in.txt']);
});

test('diff: the base can be any commit; one that does not exist is refused', async () => {
  const first = bench.work.commit('one');
  bench.work.commit('two');
  expect((await diff(first)).files.map(({ path }) => path)).toEqual(['two.txt']);
  await expect(diff('nope')).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  await expect(diff('--output=x')).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
});

test('diff: a repository without commits shows all its files', async () => {
  const path = join(bench.shop.directory, 'fresh');
  mkdirSync(path);
  new Repository(path).git('init', '--quiet', '--initial-branch=main');
  writeFileSync(join(path, 'a.txt'), 'a\n');
  const session = bench.agentIn({ path }, { worktree: null, base_branch: null });
  const shown = await bench.workbench.diff({ ...session, base_commit: 'none' }, undefined);
  expect(shown).toMatchObject({ head: null, base: null, base_commit: null, additions: 1 });
});

test('diff: a directory outside a repository, or gone, is no workspace', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'mr-outside-'));
  const session = bench.agentIn({ path: outside });
  const refusal = { code: 'NO_WORKSPACE' };
  await expect(bench.workbench.diff(session, undefined)).rejects.toMatchObject(refusal);
  rmSync(outside, { recursive: true });
  await expect(bench.workbench.diff(session, undefined)).rejects.toMatchObject(refusal);
});

test('diff: no command that the repository names is run', async () => {
  const trace = join(bench.shop.directory, 'trace');
  const evil = `sh -c 'echo ran >> ${trace}; cat'`;
  for (const key of ['filter.evil.clean', 'diff.evil.textconv', 'diff.evil.command']) {
    bench.repo.git('config', key, evil);
  }
  bench.repo.git('config', 'core.fsmonitor', evil);
  bench.repo.git('config', 'diff.external', evil);
  write('.gitattributes', '*.txt filter=evil diff=evil\n');
  write('first.txt', 'changed\n');
  expect((await diff()).file_count).toBe(2);
  expect(() => readFileSync(trace)).toThrow('ENOENT');
});
