import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { opencodeCopy, opencodeReader } from '../transcripts/answers.js';
import { OpencodeCopy } from './opencode-copy.js';

let home: string;
let now: number;
const log = memoryLog();
const signal = new AbortController().signal;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'mr-opencode-'));
  now = 0;
  log.lines.length = 0;
  mkdirSync(join(home, '.local', 'share', 'opencode'), { recursive: true });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** A program that answers with the rows of a file that are as new as the query wants. */
function fakeOpencode(): string {
  const file = join(home, 'opencode');
  const source = `#!${process.execPath}
const { appendFileSync, readFileSync } = require('node:fs');
const query = process.argv.at(-1);
if (query.includes('FROM part')) {
  const rows = [{ message: 'm2', text: 'it works.' }, { message: 'm2', text: 'Done:' }, { message: 'm1', text: 'no' }];
  console.log(query.includes("session_id = 's1'") ? JSON.stringify(rows) : '[]');
  process.exit();
}
const since = Number(/time_updated >= (\\d+)/.exec(query)[1]);
appendFileSync('${home}/queries', since + '\\n');
const rows = JSON.parse(readFileSync('${home}/rows.json', 'utf8'));
console.log(rows === null ? 'no such table' : JSON.stringify(rows.filter((r) => r.time_updated >= since)));
`;
  writeFileSync(file, source);
  chmodSync(file, 0o755);
  return file;
}

const row = (id: string, time_updated: number, output = 7) => ({
  id,
  session_id: 's1',
  time_created: 1_794_874_432_540,
  time_updated,
  model: 'fake-1',
  cwd: '/src/mill',
  input: 120,
  output,
  reasoning: 3,
  cache_read: 900,
  cache_write: 40,
});

function setRows(rows: object[] | null): void {
  writeFileSync(join(home, 'rows.json'), JSON.stringify(rows));
  appendFileSync(join(home, '.local', 'share', 'opencode', 'opencode.db'), 'x');
  now += 60_000;
}

function newCopy(program: string | undefined): OpencodeCopy {
  const clock = { ...systemClock, monotonic: () => now };
  const environment = { HOME: home };
  return new OpencodeCopy({
    dataDir: join(home, 'data'),
    home,
    environment,
    clock,
    log,
    program: async () => program,
  });
}

const copied = () =>
  readFileSync(opencodeCopy(join(home, 'data')), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ReturnType<typeof row>);

test('opencode copy: rows are copied once, and again when they have grown', async () => {
  const program = fakeOpencode();
  const copy = newCopy(program);
  expect(await copy.refresh(signal)).toBe(false);
  setRows([row('m1', 10), row('m2', 20)]);
  expect(await copy.refresh(signal)).toBe(true);
  expect(await copy.refresh(signal)).toBe(false);
  setRows([row('m1', 10), row('m2', 20), row('m3', 20), row('m4', 30)]);
  expect(await copy.refresh(signal)).toBe(true);
  setRows([row('m4', 31, 9)]);
  expect(await newCopy(program).refresh(signal)).toBe(true);
  expect(copied().map(({ id, output }) => [id, output])).toEqual([
    ['m1', 7],
    ['m2', 7],
    ['m3', 7],
    ['m4', 7],
    ['m4', 9],
  ]);
  expect(readFileSync(join(home, 'queries'), 'utf8')).toBe('0\n20\n30\n');
});

test('opencode copy: a program that cannot answer is logged, one that is missing is not', async () => {
  setRows(null);
  expect(await newCopy(undefined).refresh(signal)).toBe(false);
  expect(log.lines).toEqual([]);
  expect(await newCopy(fakeOpencode()).refresh(signal)).toBe(false);
  expect(log.lines.map(({ message }) => message)).toEqual(['failed to read opencode database']);
});

test('opencode: the last answer is every text of its last message', async () => {
  const copy = newCopy(fakeOpencode());
  expect(await copy.lastAnswer('s1')).toBe('Done:\nit works.');
  expect(await copy.lastAnswer('s2')).toBeUndefined();
  expect(await copy.lastAnswer("s1' OR 1")).toBeUndefined();
  expect(await newCopy(undefined).lastAnswer('s1')).toBeUndefined();
});

test('opencode transcripts: reasoning counts as output, the cache is counted apart', () => {
  const conversations = { rootOf: () => undefined, learnRoot: () => {} };
  const seen = opencodeReader.begin('x', null, conversations).read(row('m1', 10), 0);
  expect(seen).toMatchObject({
    at: 1_794_874_432_540,
    place: { backend: 'opencode', agent: 's1', cwd: '/src/mill', model: 'fake-1' },
    tokens: { input: 120, output: 10, cacheRead: 900, cacheWrite: 40, cacheWriteLong: 0 },
  });
});
