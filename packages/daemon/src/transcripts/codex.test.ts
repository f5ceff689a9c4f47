import { afterEach, beforeEach, expect, test } from 'vitest';
import { codexReader } from './codex.js';
import type { Tokens } from './reader.js';
import {
  codexCount,
  codexMeta,
  codexTurn,
  TranscriptHome,
} from '../../test/support/transcripts.js';

const at = Date.parse('2026-01-15T09:30:00Z');
const used = (input: number, output: number): Tokens =>
  expect.objectContaining({ input, output, cacheWrite: 0 }) as unknown as Tokens;

let home: TranscriptHome;
beforeEach(async () => {
  home = await new TranscriptHome().open();
});
afterEach(() => home.remove());

const head = (id: string, part: object = {}) => codexMeta(id, part) + codexTurn('gpt-5-codex');

test('what counts is by how much the totals grew, cached input included', async () => {
  const file = home.codex('a');
  home.write(file, head('a') + codexCount([100, 10], at) + codexCount([250, 30], at + 1));
  await home.scan();
  expect(home.total('a')).toEqual(used(250, 30));
  // Scans in between do not lose the base.
  await home.reopen();
  home.append(file, codexCount([400, 40], at + 2));
  await home.scan();
  expect(home.total('a')).toEqual(used(400, 40));
  const [cell] = home.tally.cells();
  expect(home.tally.place(cell!.place)).toMatchObject({
    backend: 'codex',
    model: 'gpt-5-codex',
    cwd: '/nowhere/race',
    repo: '/nowhere/race',
  });
});

test('codex transcripts: the cached part of the input is known, and read from old files', async () => {
  const file = home.codex('a');
  home.write(file, head('a') + codexCount([100, 10], at) + codexCount([250, 30], at + 1));
  await home.scan();
  expect(home.total('a')).toMatchObject({ input: 250, cacheRead: 125 });
  // As a version that did not know the cached part has left it.
  const state = home.tally.states.get(file)!;
  const old = {
    ...state,
    version: undefined,
    carry: { ...(state.carry as object), totals: [250, 30] },
  };
  await home.tally.commit({ detections: [], states: [old], removed: [] });
  await home.scan();
  expect(home.total('a')).toMatchObject({ input: 250, output: 30, cacheRead: 125 });
});

test('codex transcripts: repeated totals count once', async () => {
  const again = codexCount([100, 10], at, [100, 10]);
  home.write(home.codex('a'), head('a') + again + again + codexCount(undefined, at) + again);
  await home.scan();
  expect(home.total()).toEqual(used(100, 10));
});

test('a counter that falls starts a new base, and what it shows counts', async () => {
  const totals = [100, 250, 40, 90].map((input, step) => codexCount([input, input], at + step));
  home.write(home.codex('a'), head('a') + totals.join(''));
  await home.scan();
  expect(home.total()).toEqual(used(340, 340));
});

test('codex transcripts: after a small drop of the total, only the last step counts', async () => {
  const text = codexCount([1000, 100], at) + codexCount([950, 100], at + 1, [30, 5]);
  home.write(home.codex('a'), head('a') + text + codexCount([960, 101], at + 2));
  await home.scan();
  expect(home.total()).toEqual(used(1040, 106));
});

test('a fork counts what is its own, though its copy has new times', async () => {
  const steps: [number, number][] = [
    [100, 10],
    [250, 30],
  ];
  const parent = steps.map((total, step) => codexCount(total, at + step)).join('');
  const copy = steps.map((total) => codexCount(total, at + 86_400_000)).join('');
  home.write(home.codex('parent'), head('parent') + parent);
  home.write(
    home.codex('fork'),
    head('fork', { forked_from_id: 'parent' }) +
      head('parent') +
      copy +
      codexCount([400, 45], at + 86_400_001),
  );
  await home.scan();
  expect(home.total()).toEqual(used(400, 45));
  expect([home.total('parent'), home.total('fork')]).toEqual([used(250, 30), used(150, 15)]);
});

test('a fork of a fork likewise, with and without the heads of its ancestors', async () => {
  const first = codexCount([100, 10], at);
  const second = codexCount([150, 15], at + 1);
  const third = codexCount([175, 20], at + 2);
  home.write(home.codex('a'), head('a') + first);
  home.write(home.codex('b'), head('b', { forked_from_id: 'a' }) + first + second);
  home.write(home.codex('c'), head('c', { forked_from_id: 'b' }) + first + second + third);
  home.write(
    home.codex('d'),
    head('d', { forked_from_id: 'b' }) + head('b', { forked_from_id: 'a' }) + head('a') + first,
  );
  await home.scan();
  expect(home.total()).toEqual(used(175, 20));
  // What was known of ancestors is known after a restart.
  await home.reopen();
  home.write(home.codex('e'), head('e', { forked_from_id: 'c' }) + first + second + third);
  await home.scan();
  expect(home.total()).toEqual(used(175, 20));
});

test('a fork without a copy goes on from the totals of its parent', async () => {
  home.write(home.codex('a'), head('a') + codexCount([1000, 100], at));
  const own = codexCount([1200, 110], at + 1, [200, 10]) + codexCount([1300, 115], at + 2);
  home.write(home.codex('b'), head('b', { forked_from_id: 'a' }) + own);
  await home.scan();
  expect(home.total('b')).toEqual(used(300, 15));
});

test('two conversations with the same totals are two, and so are two turns of a fork', async () => {
  const same = codexCount([100, 10], at, [100, 10]);
  home.write(home.codex('a'), head('a') + same);
  home.write(home.codex('b'), head('b') + same);
  await home.scan();
  expect(home.total()).toEqual(used(200, 20));
  const turn = (id: string) => codexTurn('gpt-5-codex', { turn_id: id });
  const next = codexCount([200, 20], at + 1);
  home.append(home.codex('a'), turn('after-a') + next);
  const fork = head('c', { forked_from_id: 'a' }) + same + turn('after-c') + next;
  home.write(home.codex('c'), fork);
  await home.scan();
  expect(home.total()).toEqual(used(400, 40));
});

test('a file without a head is named after itself', async () => {
  home.write(home.codex('0199-ab'), codexCount([5, 1], at));
  await home.scan();
  expect(home.total('0199-ab')).toEqual(used(5, 1));
});

test('a transcript that is archived counts once', async () => {
  const text = head('a') + codexCount([100, 10], at);
  home.write(home.codex('a'), text);
  await home.scan();
  const { renameSync, mkdirSync } = await import('node:fs');
  mkdirSync(`${home.home}/.codex/archived_sessions`);
  renameSync(home.codex('a'), `${home.home}/.codex/archived_sessions/rollout-a.jsonl`);
  const report = await home.scan();
  expect(report).toMatchObject({ files: 1, filesRead: 1 });
  expect(home.total()).toEqual(used(100, 10));
  expect([...home.tally.states.keys()]).toEqual([
    `${home.home}/.codex/archived_sessions/rollout-a.jsonl`,
  ]);
});

test('transcripts are where the environment says', () => {
  const roots = codexReader.roots({ home: '/home/ada', environment: { CODEX_HOME: '/c' } });
  expect(roots).toEqual(['/c/sessions', '/c/archived_sessions']);
  const usual = codexReader.roots({ home: '/home/ada', environment: {} });
  expect(usual[0]).toBe('/home/ada/.codex/sessions');
});
