import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { expect, onTestFinished, test } from 'vitest';
import { gitIn, newRepo } from '../../test/support/sessions.js';
import type { Session } from '../sessions/port.js';
import { awaitFeedback, type FeedbackParts } from './feedback.js';

/** A repository, and a gh whose answers are code over `args` and `n`, the number of the call. */
function useGh(answer: string | undefined) {
  const directory = mkdtempSync(join(tmpdir(), 'mr-feedback-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const workdir = newRepo(join(directory, 'repo'));
  const callFile = join(directory, 'calls');
  const program = `#!${process.execPath}
    const fs = require('node:fs');
    const args = process.argv.slice(2);
    fs.appendFileSync(${JSON.stringify(callFile)}, args.join(' ') + '\\n');
    const all = fs.readFileSync(${JSON.stringify(callFile)}, 'utf8').trim().split('\\n');
    const n = all.filter((line) => line.startsWith(args[0] + ' ')).length;
    ${answer}`;
  if (answer !== undefined) writeFileSync(join(directory, 'gh'), program, { mode: 0o755 });
  let sleeps = 0;
  const clock: Clock = { ...systemClock, sleep: () => Promise.resolve(void sleeps++) };
  const environment = { PATH: `${directory}:/usr/bin:/bin:${dirname(process.execPath)}` };
  const git = { clock: systemClock, environment };
  const parts = { clock, git, log: memoryLog(), intervalMs: () => 60_000 };
  const session = { id: 's', workdir, branch: 'b' } as Session;
  const read = (from: readonly ('ci' | 'pr')[], seen: readonly string[] = []) => {
    const { signal } = new AbortController();
    return awaitFeedback(parts as unknown as FeedbackParts, session, { from, seen, signal });
  };
  const calls = () => readFileSync(callFile, 'utf8').trim().split('\n');
  return { read, calls, sleepCount: () => sleeps, head: () => gitIn(workdir, 'rev-parse', 'HEAD') };
}

const runs = (conclusion: string) =>
  `console.log(JSON.stringify(n < 3 ? [] : [{ name: 'tests', status: n < 4 ? 'queued' : 'completed', conclusion: '${conclusion}' }]));`;

test('feedback: waits for CI that starts some time after the push', async () => {
  const gh = useGh(runs('failure'));
  const end = await gh.read(['ci']);
  expect(end.texts).toEqual([`The check "tests" of ${gh.head().slice(0, 12)} failed.`]);
  expect(end).toMatchObject({ isRed: true, seen: [expect.stringContaining('ci:')] });
  expect(gh.calls()).toHaveLength(4);
});

test('feedback: a repository without CI is read three times', async () => {
  const gh = useGh(`console.log('[]');`);
  expect(await gh.read(['ci'])).toEqual({ texts: [], seen: [], isRed: false });
  expect(gh.calls()).toHaveLength(3);
});

test('feedback: comments on lines of a pull request count, and each one once', async () => {
  const gh = useGh(`
    const line = { id: 7, user: { login: 'bo' }, path: 'src/a.ts', line: 12, body: 'Rename it.' };
    const review = { id: 'R1', author: { login: 'bo' }, state: 'CHANGES_REQUESTED', body: '' };
    const view = { number: 4, state: n > 1 ? 'MERGED' : 'OPEN', comments: [], reviews: [review] };
    console.log(JSON.stringify(args[0] === 'api' ? [line] : view));`);
  const { texts, seen } = await gh.read(['pr']);
  expect(texts).toEqual(['bo commented on src/a.ts, line 12:\nRename it.']);
  expect(gh.calls().at(-1)).toMatch(/^api repos\/\{owner\}\/\{repo\}\/pulls\/4\/comments\?/);
  expect(await gh.read(['pr'], seen)).toMatchObject({ texts: [] });
});

test('feedback: without gh, or without a remote, it ends at once', async () => {
  const noGh = useGh(undefined);
  expect(await noGh.read(['ci', 'pr'])).toEqual({ texts: [], seen: [], isRed: false });
  const noRemote = useGh(`console.error('no git remotes found'); process.exit(1);`);
  expect(await noRemote.read(['ci'])).toMatchObject({ texts: [] });
  expect([noGh.sleepCount(), noRemote.sleepCount()]).toEqual([0, 0]);
});

test('feedback: other failures of gh are waited for, and five of them end it', async () => {
  const gh = useGh(`console.error('HTTP 502'); process.exit(1);`);
  expect(await gh.read(['pr'])).toMatchObject({ texts: [], isRed: false });
  expect(gh.calls()).toHaveLength(5);
});
