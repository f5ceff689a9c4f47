import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { calibrate, readRatio, maxSampleLength, newestSamples } from './calibrate.js';
import { calibrationFile, ledgerFile, samplesFolder } from './files.js';
import { SavingsRecorder } from './recorder.js';
import { Directories } from './savings.test-support.js';
import { Savings, type SavingsParts } from './savings.js';
import { parseSince } from '../core/since.js';

const directories = new Directories();
let dataDir: string;
beforeEach(() => {
  dataDir = directories.make();
});
afterEach(() => directories.remove());

const world = { clock: systemClock, random: systemRandom };
const recorder = (keepsSamples = true) => new SavingsRecorder({ dataDir, keepsSamples, ...world });
const savings = (parts: Partial<SavingsParts> = {}) =>
  new Savings({
    dataDir,
    clock: systemClock,
    log: memoryLog(),
    isOn: true,
    keepsSamples: true,
    ...parts,
  });
const nobody = { agentId: null, repo: null };

function shorten(raw: string, short: string, keepsSamples = true) {
  return recorder(keepsSamples).recordShortening({
    feature: 'check',
    ...nobody,
    rawBytes: Buffer.byteLength(raw),
    retainedBytes: Buffer.byteLength(short),
    texts: () => Promise.resolve({ raw, kept: short }),
  });
}

const ledgerLines = () =>
  readFileSync(ledgerFile(dataDir), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test('a shortening, an offload and a compaction are written and reported apart', async () => {
  await shorten('ok 1 reads\nok 2 writes\n12 passed', '12 passed');
  await recorder().recordOffload('x'.repeat(3_600), 'y'.repeat(1_200));
  const before = { ...nobody, tokensBefore: 1_000, tokensAfter: 1_000 };
  expect(await recorder().recordCompaction(before)).toBe(undefined);
  await recorder().recordCompaction({ ...before, tokensAfter: 250, agentId: 'a1' });
  expect(ledgerLines()).toMatchObject([
    { feature: 'check', raw_bytes: 32, kept_bytes: 9, raw_tokens: 8, kept_tokens: 3 },
    { feature: 'llm_offload', raw_tokens: 1_200, kept_tokens: 0, output_tokens: 300 },
    { feature: 'compact', raw_tokens: 1_000, kept_tokens: 250, basis: 'MEASURED', agent_id: 'a1' },
  ]);
  expect(await savings().report({})).toMatchObject({
    events: 3,
    raw_tokens: 1_008,
    kept_tokens: 253,
    axes: { offload: { tokens: 1_200, dollars: 0.012, events: 1 } },
  });
});

test('samples are attached on request, newest first, and only while they are kept', async () => {
  await shorten('first\n'.repeat(9), 'first');
  await shorten('second\n'.repeat(9), 'second');
  await shorten('third\n'.repeat(9), 'third', false);
  expect(await savings().report({})).not.toHaveProperty('samples');
  const { samples } = await savings().report({ samples: true });
  expect(samples!.map((sample) => sample.kept)).toEqual(['second', 'first']);
  expect(samples![0]).toMatchObject({ feature: 'check', raw: 'second\n'.repeat(9), repo: null });
  const off = await savings({ keepsSamples: false }).report({ samples: true });
  expect(off.samples).toEqual([]);
  expect(
    (await savings().report({ samples: true, since: '2999-01-01T00:00:00Z' })).samples,
  ).toEqual([]);
});

test('no more than 200 samples are kept, none of them long', async () => {
  const long = 'z'.repeat(100_000);
  for (let count = 0; count < 205; count++) await shorten(count === 204 ? long : 'raw', `${count}`);
  expect(readdirSync(samplesFolder(dataDir))).toHaveLength(200);
  const [newest] = await newestSamples(dataDir, { max: 1 });
  expect(newest!.kept).toBe('204');
  expect(newest!.raw.length).toBeLessThan(maxSampleLength + 10);
  expect(newest!.raw_tokens).toBe(25_000);
});

test('calibration: uses a limited number of samples, and applies to all reports', async () => {
  for (let count = 0; count < 5; count++) await shorten('abcdefgh'.repeat(40), 'x');
  const counted: string[] = [];
  const calibration = await calibrate({
    dataDir,
    now: 0,
    most: 3,
    countTokens: (text) => {
      counted.push(text);
      return Promise.resolve(100);
    },
  });
  expect(counted).toHaveLength(3);
  expect(calibration).toEqual({
    bytes_per_token: 3.2,
    samples: 3,
    bytes: 960,
    tokens: 300,
    calibrated_at: '1970-01-01T00:00:00.000Z',
  });
  expect(await savings().report({})).toMatchObject({
    basis: 'CALIBRATED',
    calibrated_bytes_per_token: 3.2,
    raw_tokens: 500,
  });
  await shorten('y'.repeat(320), 'y');
  expect(ledgerLines().at(-1)).toMatchObject({ raw_tokens: 100, basis: 'CALIBRATED' });
});

test('whatever goes wrong while calibrating changes nothing', async () => {
  const parts = { dataDir, now: 0, most: 50 };
  expect(await calibrate({ ...parts, countTokens: () => Promise.resolve(1) })).toBe('no samples');
  await shorten('abcdefgh'.repeat(40), 'x');
  await calibrate({ ...parts, countTokens: () => Promise.resolve(100) });
  await shorten('abcdefgh'.repeat(40), 'x');
  const before = readFileSync(calibrationFile(dataDir), 'utf8');
  let calls = 0;
  const faults = [
    () => Promise.reject(new Error('429')),
    () => (calls++ === 0 ? Promise.resolve(50) : Promise.reject(new Error('second'))),
    () => Promise.resolve(NaN),
    () => Promise.resolve(0),
    () => Promise.resolve(100_000),
  ];
  for (const countTokens of faults) {
    await expect(calibrate({ ...parts, countTokens })).rejects.toThrow();
    expect(readFileSync(calibrationFile(dataDir), 'utf8')).toBe(before);
  }
  expect(readdirSync(dataDir)).toEqual(['savings']);
});

test('a damaged calibration is named, and the heuristic holds', async () => {
  await shorten('abcd', 'a');
  for (const text of ['{', '7', '{"bytes_per_token":"4"}', '{"bytes_per_token":0}']) {
    writeFileSync(calibrationFile(dataDir), text);
    const log = memoryLog();
    expect(await savings({ log }).report({})).toMatchObject({ basis: 'HEURISTIC', raw_tokens: 1 });
    expect(log.lines).toMatchObject([{ level: 'warn' }]);
  }
  expect((await readRatio(dataDir)).bytesPerToken).toBe(4);
});

test('when the setting is off there is no report, and unknown buckets are no trend', async () => {
  const refusal = await savings({ isOn: false })
    .report({})
    .catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(Refusal);
  expect(refusal).toMatchObject({ code: 'SAVINGS_DISABLED' });
  for (const bucket of ['week', '', 'Day', 'hours']) {
    expect(await savings().report({ bucket })).not.toHaveProperty('buckets');
  }
  expect(existsSync(ledgerFile(dataDir))).toBe(false);
});

test('since is a span or a timestamp, and everything else is refused with what to write', () => {
  const now = Date.parse('2026-01-15T00:00:00Z');
  expect(parseSince('24h', now)).toBe(now - 86_400_000);
  expect(parseSince('30m', now)).toBe(now - 1_800_000);
  expect(parseSince('2w', now)).toBe(now - 14 * 86_400_000);
  expect(parseSince('999999w', now)).toBe(0);
  expect(parseSince('2026-01-01T00:00:00+01:00', now)).toBe(Date.parse('2025-12-31T23:00:00Z'));
  for (const text of ['', 'soon', '0h', '-1h', '1.5h', '7', '2026-01-01', '7D', '1h30m']) {
    expect(() => parseSince(text, now)).toThrow(
      /INVALID_REQUEST: since must be a duration such as 24h/,
    );
  }
});

test('a ledger that cannot be read is an error, not an empty report', async () => {
  mkdirSync(ledgerFile(dataDir), { recursive: true });
  await expect(savings().report({})).rejects.toThrow(/EISDIR/);
});
