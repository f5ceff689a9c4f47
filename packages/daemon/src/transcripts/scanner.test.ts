import { mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { GitRoots } from './find-files.js';
import { transcriptReaders } from './readers.js';
import type { FileState } from './scan-file.js';
import { Scanner } from './scanner.js';
import {
  claudeLine,
  claudeNoise,
  codexCount,
  codexMeta,
  sumOf,
  TranscriptHome,
  truth,
} from '../../test/support/transcripts.js';

let home: TranscriptHome;
beforeEach(async () => {
  home = await new TranscriptHome().open();
});
afterEach(() => home.remove());

const messages = Array.from({ length: 12 }, (_, at) => truth(`m${at}`));
const linesOf = (from: number, to: number) =>
  messages
    .slice(from, to)
    .map((each) => claudeLine(each))
    .join('');

test('nothing to read is nothing', async () => {
  expect(await home.scan()).toEqual({ files: 0, filesRead: 0, bytesRead: 0, brokenLines: 0 });
});

test('only what is new is read, also after a restart', async () => {
  const file = home.claude('session-1');
  home.write(file, linesOf(0, 5));
  home.write(home.claude('other'), claudeNoise('other'));
  expect(await home.scan()).toMatchObject({ files: 2, filesRead: 2 });
  expect(await home.scan()).toMatchObject({ files: 2, filesRead: 0, bytesRead: 0 });
  await home.reopen();
  expect(await home.scan()).toMatchObject({ files: 2, filesRead: 0, bytesRead: 0 });
  home.append(file, linesOf(5, 7));
  const bytesRead = Buffer.byteLength(linesOf(5, 7));
  expect(await home.scan()).toMatchObject({ filesRead: 1, bytesRead });
  expect(home.total()).toEqual(sumOf(messages.slice(0, 7)));
});

test('half a line is left until its end comes, wherever it is cut', async () => {
  const file = home.claude('session-1');
  const line = Buffer.from(claudeLine(truth('cut', { cwd: '/nowhere/Mühle' })));
  for (const at of [1, 40, line.indexOf('"usage"') + 3, line.indexOf('ü') + 1, line.length - 2]) {
    home.write(file, linesOf(0, 1));
    home.append(file, line.subarray(0, at));
    await home.scan();
    const before = home.total();
    home.append(file, line.subarray(at));
    await home.scan();
    expect(home.total()).toEqual(sumOf([messages[0]!, truth('cut')]));
    if (at === 1) expect(before).toEqual(messages[0]!.tokens);
  }
  expect(home.log.lines).toEqual([]);
});

test('a last line that lacks only its end counts at once, and once', async () => {
  const file = home.claude('session-1');
  home.write(file, linesOf(0, 2).trimEnd());
  await home.scan();
  expect(home.total()).toEqual(sumOf(messages.slice(0, 2)));
  home.append(file, `\n${linesOf(2, 3)}`);
  await home.scan();
  expect(home.total()).toEqual(sumOf(messages.slice(0, 3)));
  // Where totals are counted on, too.
  const rollout = home.codex('a');
  home.write(rollout, codexMeta('a') + codexCount([100, 10], 1).trimEnd());
  await home.scan();
  expect(home.total('a')).toMatchObject({ input: 100, output: 10 });
  home.append(rollout, `\n${codexCount([130, 11], 2)}`);
  await home.scan();
  expect(home.total('a')).toMatchObject({ input: 130, output: 11 });
});

test('a file that was truncated, replaced or rewritten is read again, and counts once', async () => {
  const file = home.claude('session-1');
  home.write(file, linesOf(0, 4));
  await home.scan();
  truncateSync(file, Buffer.byteLength(linesOf(0, 2)));
  await home.scan();
  home.append(file, linesOf(6, 7));
  await home.scan();
  expect(home.total()).toEqual(sumOf([...messages.slice(0, 4), messages[6]!]));
  // Another file under the same name, longer than the old one.
  writeFileSync(`${file}.new`, linesOf(1, 9));
  renameSync(`${file}.new`, file);
  await home.scan();
  expect(home.total()).toEqual(sumOf(messages.slice(0, 9)));
  // The same file with other bytes, longer than before.
  writeFileSync(file, linesOf(9, 12) + linesOf(0, 9));
  await home.scan();
  expect(home.total()).toEqual(sumOf(messages));
});

test('a file in the place of another is read from its start, though it ends alike', async () => {
  const file = home.claude('session-1');
  home.write(file, linesOf(0, 2));
  await home.scan();
  writeFileSync(`${file}.new`, linesOf(5, 6) + linesOf(1, 3));
  renameSync(`${file}.new`, file);
  await home.scan();
  expect(home.total()).toEqual(sumOf([messages[0]!, messages[1]!, messages[2]!, messages[5]!]));
});

test('a file that is gone takes nothing back, and one that comes back adds nothing', async () => {
  const file = home.claude('session-1');
  home.write(file, linesOf(0, 3));
  await home.scan();
  rmSync(file);
  expect(await home.scan()).toMatchObject({ files: 0 });
  expect([...home.tally.states]).toEqual([]);
  await home.reopen();
  expect([...home.tally.states]).toEqual([]);
  home.write(file, linesOf(0, 4));
  await home.scan();
  expect(home.total()).toEqual(sumOf(messages.slice(0, 4)));
});

test('a file that cannot be read is named, and the others are read', async () => {
  mkdirSync(join(home.home, '.claude', 'projects', 'p', 'a.jsonl'), { recursive: true });
  symlinkSync('nowhere', join(home.home, '.claude', 'projects', 'p', 'b.jsonl'));
  symlinkSync('..', join(home.home, '.claude', 'projects', 'p', 'circle'));
  home.write(home.claude('session-1'), linesOf(0, 1));
  expect(await home.scan()).toMatchObject({ files: 1, filesRead: 1 });
  expect(home.total()).toEqual(messages[0]!.tokens);
});

test('a large file goes to disk in steps, and a scan that is stopped is gone on with', async () => {
  await home.reopen({ batchMessages: 5, pieceBytes: 2_000 });
  const many = Array.from({ length: 300 }, (_, at) => truth(`n${at}`));
  home.write(home.claude('session-1'), many.map((each) => claudeLine(each)).join(''));
  const stop = new AbortController();
  const scan = home.scan(stop.signal);
  while (home.tally.states.size === 0) await new Promise((resolve) => setImmediate(resolve));
  stop.abort(new Error('stopped'));
  await expect(scan).rejects.toThrow('stopped');
  await home.reopen({ batchMessages: 5, pieceBytes: 2_000 });
  const [state] = home.tally.states.values();
  expect(state!.offset).toBeGreaterThan(0);
  expect(home.total().input).toBeLessThan(sumOf(many).input);
  await home.scan();
  expect(home.total()).toEqual(sumOf(many));
});

test('the repository of a directory is found by its mark, and a worktree has that of its origin', async () => {
  const repo = join(home.home, 'mill');
  mkdirSync(join(repo, '.git', 'worktrees', 'w'), { recursive: true });
  mkdirSync(join(repo, 'src', 'deep'), { recursive: true });
  const worktree = join(home.home, 'elsewhere', 'w');
  home.write(join(worktree, '.git'), `gitdir: ${repo}/.git/worktrees/w\n`);
  const submodule = join(repo, 'vendor');
  home.write(join(submodule, '.git'), 'gitdir: ../.git/modules/vendor\n');
  const roots = new GitRoots();
  const found = [
    join(repo, 'src', 'deep'),
    repo,
    worktree,
    submodule,
    '/gone/away',
    'relative',
    '',
  ];
  expect(await Promise.all(found.map((each) => roots.rootOf(each)))).toEqual([
    repo,
    repo,
    repo,
    submodule,
    '/gone/away',
    'relative',
    '',
  ]);
});

test('progress: bytes read and to read while a scan runs, and nothing without one', async () => {
  const states = new Map<string, FileState>();
  let release = () => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  const scanner = new Scanner({
    readers: transcriptReaders,
    places: { home: home.home, environment: {} },
    tally: {
      states,
      commit: async (batch) => {
        await gate;
        for (const state of batch.states) states.set(state.path, state);
      },
    },
    log: home.log,
    batchMessages: 1,
  });
  expect(await scanner.progress()).toBeUndefined();
  for (const name of ['a', 'b', 'c']) home.write(home.claude(name), linesOf(0, 6));
  const size = Buffer.byteLength(linesOf(0, 6));
  const scan = scanner.scan();
  // The third waits until the first is on disk.
  await expect
    .poll(() => scanner.progress())
    .toEqual({ bytesRead: 2 * size, bytesTotal: 3 * size });
  release();
  expect((await scan).bytesRead).toBe(3 * size);
  expect(await scanner.progress()).toBeUndefined();
});
