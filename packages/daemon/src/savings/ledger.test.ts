import { appendFileSync, readFileSync, renameSync, statSync, truncateSync } from 'node:fs';
import { memoryLog } from '@millrace/kit/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { appendEntry, Ledger } from './ledger.js';
import { entryOf, lineOf, type Entry } from './entry.js';
import { ledgerFile } from './files.js';
import { Directories, linesOf, someEntry, writeLedger } from './savings.test-support.js';

const directories = new Directories();
let dataDir: string;
beforeEach(() => {
  dataDir = directories.make();
});
afterEach(() => directories.remove());

const openLedger = (log = memoryLog()) => new Ledger(ledgerFile(dataDir), log);

async function rawTokens(ledger: Ledger): Promise<number[]> {
  return (await ledger.rows()).map(({ rawTokens: tokens }) => tokens);
}

const entry = (rawTokensOfIt: number): Entry => ({ ...someEntry, rawTokens: rawTokensOfIt });

test('a line holds what the contract promises, and is read back', () => {
  expect(JSON.parse(lineOf(someEntry))).toEqual({
    ts: '2026-01-14T10:12:00.000Z',
    feature: 'check',
    agent_id: null,
    repo: '/home/ada/src/mühle',
    raw_bytes: 4_000,
    kept_bytes: 400,
    raw_tokens: 1_000,
    kept_tokens: 100,
    basis: 'HEURISTIC',
  });
  for (const feature of ['check', 'git', 'compact', 'llm_offload'] as const) {
    const offload = feature === 'llm_offload' ? { outputBytes: 8, outputTokens: 2 } : {};
    const whole = { ...someEntry, feature, agentId: 'a', ...offload };
    expect(entryOf(lineOf(whole))).toEqual(whole);
  }
});

test('what is not a whole line of a known feature is no entry', () => {
  const line = JSON.parse(lineOf(someEntry)) as Record<string, unknown>;
  const changes = [
    { feature: 'teleport' },
    { ts: 'yesterday' },
    { ts: -12 },
    { ts: 1e12 },
    { ts: null },
    { raw_tokens: -1 },
    { raw_tokens: 1.5 },
    { raw_tokens: '7' },
    { kept_bytes: 'few' },
  ];
  for (const change of changes) {
    expect([change, entryOf(JSON.stringify({ ...line, ...change }))]).toEqual([change, undefined]);
  }
  for (const text of ['', 'null', '7', '[]', '{', 'nonsense'])
    expect(entryOf(text)).toBe(undefined);
});

test('a line of another writer may lack tokens or bytes, and count time in seconds', () => {
  const line = { ts: 1_768_348_800, feature: 'git', raw_bytes: 4_001, kept_bytes: 400 };
  expect(entryOf(JSON.stringify(line))).toMatchObject({
    at: Date.parse('2026-01-14T00:00:00Z'),
    rawTokens: 1_001,
    retainedTokens: 100,
    agentId: null,
    basis: 'HEURISTIC',
  });
  const counted = { ts: line.ts, feature: 'compact', raw_tokens: 7, kept_tokens: 3 };
  expect(entryOf(JSON.stringify(counted))).toMatchObject({ rawBytes: 0, rawTokens: 7 });
});

test('an appended line is there at once, and only the new part of the file is read', async () => {
  const ledger = openLedger();
  expect(await rawTokens(ledger)).toEqual([]);
  await appendEntry(dataDir, entry(1));
  expect(await rawTokens(ledger)).toEqual([1]);
  await appendEntry(dataDir, entry(2));
  await appendEntry(dataDir, entry(3));
  expect(await rawTokens(ledger)).toEqual([1, 2, 3]);
  expect(statSync(ledgerFile(dataDir)).mode & 0o777).toBe(0o600);
});

test('a write torn at any byte costs that line and no other', async () => {
  const before = linesOf([entry(1), entry(2)]);
  const torn = Buffer.from(`${lineOf(entry(3))}\n`);
  for (let length = 0; length <= torn.length; length++) {
    const rest = torn.subarray(0, length);
    writeLedger(dataDir, Buffer.concat([Buffer.from(before), rest]));
    const log = memoryLog();
    const ledger = openLedger(log);
    // Without its line break the line is whole, and loses nothing.
    const isWhole = length >= torn.length - 1;
    const expected = isWhole ? [1, 2, 3] : [1, 2];
    expect([length, await rawTokens(ledger)]).toEqual([length, expected]);
    expect(log.lines).toEqual([]);

    await appendEntry(dataDir, entry(4));
    const together = [...expected, 4];
    expect([length, await rawTokens(ledger)]).toEqual([length, together]);
    expect([length, await rawTokens(openLedger())]).toEqual([length, together]);
    const isBroken = length > 0 && !isWhole;
    expect([length, ledger.broken, log.lines.length]).toEqual([length, +isBroken, +isBroken]);
    expect(readFileSync(ledgerFile(dataDir), 'utf8').endsWith(`\n${lineOf(entry(4))}\n`)).toBe(
      true,
    );
  }
});

test('a line that is still being written is counted once, when it is whole', async () => {
  const ledger = openLedger();
  const bytes = Buffer.from(linesOf([entry(1), entry(2)]));
  const file = writeLedger(dataDir, '');
  for (const byte of bytes) {
    appendFileSync(file, Buffer.from([byte]));
    expect((await rawTokens(ledger)).length).toBeLessThanOrEqual(2);
  }
  expect(await rawTokens(ledger)).toEqual([1, 2]);
  expect(ledger.broken).toBe(0);
});

test('damage in the middle is passed over and named, however long it is', async () => {
  const log = memoryLog();
  const ledger = openLedger(log);
  const damage = ['not json', 'x'.repeat(70_000), 'y'.repeat(3_000_000), '\u0000\u0000'];
  const text = damage.map((broken, at) => `${broken}\n${linesOf([entry(at + 1)])}`).join('\n');
  writeLedger(dataDir, text);
  expect(await rawTokens(ledger)).toEqual([1, 2, 3, 4]);
  expect(ledger.broken).toBe(4);
  expect(log.lines[0]).toMatchObject({ level: 'warn', fields: { offset: 0 } });
});

test('lines that lie across the chunks of reading are whole', async () => {
  const many = Array.from({ length: 20_000 }, (_, at) => entry(at));
  writeLedger(dataDir, linesOf(many));
  expect(statSync(ledgerFile(dataDir)).size).toBeGreaterThan(3 * 1_048_576);
  expect(await rawTokens(openLedger())).toEqual(many.map((each) => each.rawTokens));
});

test('a ledger that was cut, replaced or removed is read from its beginning', async () => {
  const ledger = openLedger();
  const file = writeLedger(dataDir, linesOf([entry(1), entry(2), entry(3)]));
  expect(await rawTokens(ledger)).toEqual([1, 2, 3]);
  truncateSync(file, linesOf([entry(1)]).length + 1);
  expect(await rawTokens(ledger)).toEqual([1]);
  renameSync(file, `${file}.old`);
  expect(await rawTokens(ledger)).toEqual([]);
  writeLedger(dataDir, linesOf([entry(7), entry(8), entry(9), entry(10)]));
  expect(await rawTokens(ledger)).toEqual([7, 8, 9, 10]);
});

test('many who ask at once count every line once', async () => {
  const ledger = openLedger();
  writeLedger(dataDir, linesOf(Array.from({ length: 500 }, (_, at) => entry(at))));
  const all = await Promise.all(Array.from({ length: 20 }, () => rawTokens(ledger)));
  expect(all.map(({ length }) => length)).toEqual(Array.from({ length: 20 }, () => 500));
});
