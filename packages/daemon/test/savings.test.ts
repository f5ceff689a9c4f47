import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { expectSchema } from './support/client.js';
import { startDaemon, type TestDaemon, type TestOptions } from './support/daemon.js';
import { FakeModel } from './support/fake-ollama.js';

const program = fileURLToPath(new URL('./programs/append-savings.mjs', import.meta.url));

let daemon: TestDaemon;
let model: FakeModel | undefined;
afterEach(async () => {
  await daemon.dispose();
  await model?.stop();
  model = undefined;
});

async function start(options: TestOptions = {}): Promise<void> {
  daemon = await startDaemon(options);
}

const report = (query = '') => daemon.api.ok('GET', `/api/v1/savings${query}`);

function writeLedger(dataDir: string, lines: readonly object[]): void {
  mkdirSync(join(dataDir, 'savings'), { recursive: true });
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  writeFileSync(join(dataDir, 'savings', 'ledger.jsonl'), text);
}

const line = (change: object) => ({
  ts: new Date().toISOString(),
  feature: 'check',
  agent_id: null,
  repo: null,
  raw_bytes: 8_000,
  kept_bytes: 800,
  raw_tokens: 2_000,
  kept_tokens: 200,
  basis: 'HEURISTIC',
  ...change,
});

const ago = (ms: number) => new Date(Date.now() - ms).toISOString();
const [hourMs, dayMs] = [3_600_000, 86_400_000];

test('the ledger is reported over REST, by window and with a trend up to now', async () => {
  await start();
  writeLedger(daemon.dataDir, [
    line({ ts: ago(30 * dayMs) }),
    line({ ts: ago(3 * dayMs), feature: 'git' }),
    line({ ts: ago(2 * hourMs), feature: 'compact', raw_bytes: 0, kept_bytes: 0 }),
    line({ feature: 'llm_offload', kept_bytes: 0, kept_tokens: 0, output_tokens: 500 }),
  ]);
  const all = await report();
  expectSchema('SavingsReport', all);
  expect(all).toMatchObject({
    since: null,
    events: 4,
    raw_tokens: 6_000,
    kept_tokens: 600,
    saved_tokens: 5_400,
    saved_dollars: 0.027,
    reduction_pct: 90,
    axes: { offload: { tokens: 2_000, dollars: 0.02, events: 1 } },
    basis: 'HEURISTIC',
  });
  expect(all).not.toHaveProperty('buckets');
  expect((await report('?since=24h')).events).toBe(2);
  expect((await report('?since=7d')).events).toBe(3);
  expect((await report('?since=2w')).events).toBe(3);
  expect((await report(`?since=${ago(5 * hourMs)}`)).events).toBe(2);

  for (const bucket of ['day', 'hour']) {
    const trend = await report(`?bucket=${bucket}&since=7d`);
    expectSchema('SavingsReport', trend);
    expect(trend.bucket_granularity).toBe(bucket);
    const now = Date.now() / 1000;
    const last = trend.buckets.at(-1);
    expect(last.ts).toBeLessThanOrEqual(now);
    expect(last.cumulative).toBe(trend.saved_tokens);
    expect(trend.buckets.length).toBeGreaterThanOrEqual(bucket === 'day' ? 7 : 7 * 24);
  }
  expect(await report('?bucket=fortnight')).not.toHaveProperty('buckets');
});

test('an answer of the local model is an offload, and never touches the context', async () => {
  model = await FakeModel.start({ protocol: 'ollama', answer: () => 'y'.repeat(1_200) });
  await start({ flags: { 'backends-local-url': model.url } });
  await daemon.api.ok('POST', '/api/v1/think', { prompt: 'x'.repeat(3_600) });
  expect(await report()).toMatchObject({
    events: 1,
    raw_tokens: 0,
    reduction_pct: 0,
    features: [{ feature: 'llm_offload', saved_tokens: 1_200, raw_tokens: 1_200, events: 1 }],
    axes: { offload: { tokens: 1_200, dollars: 0.012, events: 1 } },
  });
});

test.each(['ollama', 'openai'] as const)(
  'offload: the token counts that a %s server reports are used',
  async (protocol) => {
    model = await FakeModel.start({ protocol, tokens: { input: 1_000, output: 40 } });
    await start({ flags: { 'backends-local-url': model.url } });
    await daemon.api.ok('POST', '/api/v1/think', { prompt: 'hello' });
    const { axes } = await report();
    expect(axes.offload).toEqual({ tokens: 1_040, dollars: 0.006, events: 1 });
    const ledger = readFileSync(join(daemon.home, 'data', 'savings', 'ledger.jsonl'), 'utf8');
    expect(JSON.parse(ledger)).toMatchObject({ output_tokens: 40, basis: 'MEASURED' });
  },
);

test('a ledger that cannot be written costs no answer of the local model', async () => {
  model = await FakeModel.start({ protocol: 'ollama' });
  await start({ flags: { 'backends-local-url': model.url } });
  writeFileSync(join(daemon.dataDir, 'savings'), 'in the way');
  const { text } = await daemon.api.ok('POST', '/api/v1/think', { prompt: 'hello' });
  expect(text).toBe('from the local model');
  expect(daemon.log.lines.filter(({ level }) => level === 'warn')).toMatchObject([
    { message: 'failed to record local model savings' },
  ]);
});

test('with the setting off there is no report, and nothing is recorded', async () => {
  model = await FakeModel.start({ protocol: 'ollama' });
  await start({ flags: { savings: 'off', 'backends-local-url': model.url } });
  await daemon.api.ok('POST', '/api/v1/think', { prompt: 'hello' });
  await daemon.api.refused({ path: '/api/v1/savings' }, 403, 'SAVINGS_DISABLED');
  expect(() => readFileSync(join(daemon.dataDir, 'savings', 'ledger.jsonl'))).toThrow(/ENOENT/);
});

test('ledger: concurrent appends, with one process killed, lose no acknowledged entry', async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-savings-'));
  await start({ home });
  const acknowledged: string[] = [];
  const run = (name: string, count: number, killAfter = Infinity) =>
    new Promise<number | null>((resolve, reject) => {
      const child = spawn(process.execPath, [program, daemon.dataDir, name, String(count)]);
      let [out, err, seen] = ['', '', 0];
      child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        const lines = (out + text).split('\n');
        out = lines.pop()!;
        acknowledged.push(...lines);
        seen += lines.length;
        if (seen >= killAfter) child.kill('SIGKILL');
      });
      child.on('error', reject);
      child.on('close', (code) => (err === '' ? resolve(code) : reject(new Error(err))));
    });
  let isDone = false;
  const reading = (async () => {
    for (let least = 0; !isDone;) {
      const { events } = await report();
      expect(events).toBeGreaterThanOrEqual(least);
      least = events;
    }
  })();
  const codes = await Promise.all([
    run('a', 120),
    run('b', 120),
    run('c', 120),
    run('d', 100_000, 60),
  ]);
  isDone = true;
  await reading;
  expect(codes).toEqual([0, 0, 0, null]);

  const text = readFileSync(join(daemon.dataDir, 'savings', 'ledger.jsonl'), 'utf8');
  const agents = text
    .split('\n')
    .filter((each) => each !== '')
    .map((each) => (JSON.parse(each) as { agent_id: string }).agent_id);
  expect(new Set(agents).size).toBe(agents.length);
  expect(acknowledged.filter((each) => !agents.includes(each))).toEqual([]);
  expect(acknowledged.length).toBeGreaterThanOrEqual(3 * 120 + 60);
  const final = await report();
  expect([final.events, final.raw_tokens]).toEqual([agents.length, agents.length * 1_000]);
});
