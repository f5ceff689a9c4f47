import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';
import { FakeModel, type FakeModelOptions } from './support/fake-ollama.js';

const again = inCampaign('process');

let home: string;
let clis: FakeClis;
let daemon: TestDaemon;
let model: FakeModel | undefined;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'mr-think-'));
  clis = new FakeClis(join(home, 'bin'));
});
afterEach(async () => {
  await daemon.dispose();
  await model?.stop();
  model = undefined;
});

/** Starts a daemon in which these backends, and no others, are free. */
async function startWith(free: string[], flags: Record<string, string> = {}): Promise<void> {
  daemon = await startDaemon({
    home,
    path: clis.path,
    environment: { MILLRACE_TOKENS_WARN: '100k', SOME_VARIABLE: 'passed on' },
    flags: {
      'agents-env': 'SOME_VARIABLE',
      ...(model && { 'backends-local-url': model.url }),
      ...flags,
    },
  });
  for (const id of free) await daemon.api.ok('PATCH', `/api/v1/backends/${id}`, { tier: 'free' });
}

async function startModel(options: FakeModelOptions = { protocol: 'ollama' }): Promise<void> {
  model = await FakeModel.start(options);
}

const think = (prompt = 'Name this change in one line.') =>
  daemon.api.ok('POST', '/api/v1/think', { prompt });

test('the first free backend answers, with the prompt from stdin', async () => {
  clis.add('gemini', 'process.stdout.write(`heard: ${prompt}\\n`);');
  clis.add('opencode', 'process.stdout.write("must not be asked");');
  await startWith(['gemini', 'opencode']);
  expect(await think('what is "a" \'b\' $(c) `d`?')).toEqual({
    backend: 'gemini',
    text: 'heard: what is "a" \'b\' $(c) `d`?',
    degraded: false,
    tried: [{ id: 'gemini', outcome: 'answered', reason: null }],
  });
});

again('a program that takes no stdin has the prompt as one argument', async () => {
  clis.add('copilot', 'process.stdout.write(JSON.stringify({ args, prompt }));');
  await startWith(['copilot']);
  const { text } = await think('two words; rm -rf $HOME');
  expect(JSON.parse(text)).toEqual({ args: ['--prompt', 'two words; rm -rf $HOME'], prompt: '' });
});

again('a prompt that no argument can hold is passed to the next backend', async () => {
  clis.add('copilot', 'process.stdout.write("asked");');
  clis.add('gemini', 'process.stdout.write(String(prompt.length));');
  await startWith(['copilot', 'gemini']);
  const { backend, text, tried } = await think('x'.repeat(200_000));
  expect([backend, text]).toEqual(['gemini', '200000']);
  expect(tried[0]).toMatchObject({ id: 'copilot', outcome: 'unavailable' });
});

test('paid, unclassified, disabled and missing backends are never asked', async () => {
  const witness = join(home, 'witness');
  for (const id of ['claude', 'codex', 'amp', 'goose']) {
    clis.add(id, `require('node:fs').appendFileSync(${JSON.stringify(witness)}, '${id} ');`);
  }
  await startWith(['goose', 'kimi']);
  const patch = (id: string, body: object) =>
    daemon.api.ok('PATCH', `/api/v1/backends/${id}`, body);
  await patch('claude', { tier: 'subscription' });
  await patch('codex', { tier: 'pay_per_use' });
  await patch('goose', { enabled: false });
  await daemon.api.ok('PUT', '/api/v1/backends/default', { id: 'claude' });
  expect(await think()).toEqual({
    backend: null,
    text: null,
    degraded: true,
    tried: [{ id: 'local', outcome: 'unavailable', reason: 'no local model is reachable' }],
  });
  expect(existsSync(witness)).toBe(false);
});

test('the default comes first and the others by id, however badly each one fails', async () => {
  clis.add('amp', 'process.exit(3);');
  clis.add('crush', 'process.kill(process.pid, "SIGSEGV");');
  clis.add('gemini', 'process.stdout.write("  \\n");');
  clis.add('opencode', 'console.error("please log in first"); process.exit(1);');
  await startModel();
  await startWith(['opencode', 'gemini', 'crush', 'amp']);
  await daemon.api.ok('PUT', '/api/v1/backends/default', { id: 'gemini' });
  expect(await think()).toEqual({
    backend: 'local',
    text: 'from the local model',
    degraded: false,
    tried: [
      { id: 'gemini', outcome: 'error', reason: 'it answered nothing' },
      { id: 'amp', outcome: 'error', reason: 'it ended with code 3' },
      { id: 'crush', outcome: 'error', reason: 'it was ended by SIGSEGV' },
      { id: 'opencode', outcome: 'unauthenticated', reason: 'no valid login' },
      { id: 'local', outcome: 'answered', reason: null },
    ],
  });
  expect((await daemon.api.row('opencode')).limited_until).toBe(null);
});

test('a rate limit passes the backend over for the configured time', async () => {
  clis.add('gemini', 'console.error("reason: RATE_LIMIT_EXCEEDED"); process.exit(1);');
  clis.add('opencode', 'process.stdout.write("second");');
  await startWith(['gemini', 'opencode'], { 'backends-limit-retry': '10m' });
  const before = Date.now();
  const first = await think();
  expect(first).toMatchObject({ backend: 'opencode', text: 'second' });
  expect(first.tried[0]).toEqual({
    id: 'gemini',
    outcome: 'rate_limited',
    reason: 'RATE_LIMIT_EXCEEDED',
  });
  const until = Date.parse((await daemon.api.row('gemini')).limited_until!);
  expect(until).toBeGreaterThanOrEqual(before + 600_000);
  expect(until).toBeLessThanOrEqual(Date.now() + 600_000);
  expect((await think()).tried.map(({ id }: { id: string }) => id)).toEqual(['opencode']);

  await daemon.api.ok('POST', '/api/v1/backends/rescan');
  expect(Date.parse((await daemon.api.row('gemini')).limited_until!)).toBe(until);
});

again('a reset that the program names further away counts', async () => {
  const resetsAt = Math.floor(Date.now() / 1000) + 7_200;
  const line = { status: 'rejected', rateLimitType: 'five_hour', resetsAt };
  clis.add('claude', `console.log(${JSON.stringify(JSON.stringify(line))});`);
  clis.add('amp', 'console.error("Error: credit balance is too low"); process.exit(1);');
  await startWith(['claude', 'amp']);
  const { degraded, tried } = await think();
  expect(degraded).toBe(true);
  expect(tried.map(({ id, outcome }: { id: string; outcome: string }) => [id, outcome])).toEqual([
    ['amp', 'spend_limited'],
    ['claude', 'rate_limited'],
    ['local', 'unavailable'],
  ]);
  expect((await daemon.api.row('claude')).limited_until).toBe(
    new Date(resetsAt * 1000).toISOString(),
  );
  const amp = Date.parse((await daemon.api.row('amp')).limited_until!);
  expect(Math.abs(amp - Date.now() - 900_000)).toBeLessThan(60_000);
});

again('an answer that talks about limits is an answer', async () => {
  const answer = 'The API says 429: rate limit.\nSo retry after 30 s.\nQUOTA_EXHAUSTED means wait.';
  clis.add('gemini', `process.stdout.write(${JSON.stringify(answer)});`);
  await startWith(['gemini']);
  expect(await think()).toMatchObject({ backend: 'gemini', text: answer });
});

test('a backend that becomes paid while another one thinks is not asked any more', async () => {
  const [started, go, witness] = ['started', 'go', 'witness'].map((name) => join(home, name));
  clis.add(
    'amp',
    `const fs = require('node:fs');
     fs.writeFileSync(${JSON.stringify(started)}, '');
     setInterval(() => fs.existsSync(${JSON.stringify(go)}) && process.exit(1), 20);`,
  );
  for (const id of ['gemini', 'goose', 'kimi']) {
    clis.add(id, `require('node:fs').writeFileSync(${JSON.stringify(witness)}, '${id}');`);
  }
  clis.add('qwen', 'process.stdout.write("still free");');
  await startWith(['amp', 'gemini', 'goose', 'kimi', 'qwen']);
  const thinking = think();
  await expect.poll(() => existsSync(started!)).toBe(true);
  await daemon.api.ok('PATCH', '/api/v1/backends/gemini', { tier: 'pay_per_use' });
  await daemon.api.ok('PATCH', '/api/v1/backends/goose', { enabled: false });
  clis.remove('kimi');
  await daemon.api.ok('POST', '/api/v1/backends/rescan');
  writeFileSync(go!, '');
  const { backend, tried } = await thinking;
  expect(backend).toBe('qwen');
  expect(tried.map(({ id }: { id: string }) => id)).toEqual(['amp', 'qwen']);
  expect(existsSync(witness!)).toBe(false);
});

again('a program that is gone since the last look is passed over', async () => {
  clis.add('gemini', 'process.stdout.write("gemini");');
  await startWith(['gemini']);
  clis.remove('gemini');
  expect((await think()).tried[0]).toEqual({
    id: 'gemini',
    outcome: 'unavailable',
    reason: 'the program is gone; run `ctl backend rescan`',
  });
});

test('a program that hangs is ended with everything it started', async () => {
  const pids = join(home, 'pids');
  clis.add(
    'gemini',
    `const { spawn } = require('node:child_process');
     const child = spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)']);
     process.on('SIGTERM', () => {});
     require('node:fs').writeFileSync(${JSON.stringify(pids)}, process.pid + ' ' + child.pid);
     setInterval(() => {}, 1000);`,
  );
  await startModel();
  await startWith(['gemini'], { 'backends-think-timeout': '3s' });
  const { backend, tried } = await think();
  expect(backend).toBe('local');
  expect(tried[0]).toEqual({ id: 'gemini', outcome: 'timeout', reason: 'it took too long' });
  const alive = readFileSync(pids, 'utf8').split(' ').map(Number).filter(isAlive);
  expect(alive).toEqual([]);
});

again(
  'a program that exits and leaves something with its pipes open does not hold up the answer',
  async () => {
    const pids = join(home, 'pids');
    clis.add(
      'gemini',
      `const { spawn } = require('node:child_process');
     const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' });
     require('node:fs').writeFileSync(${JSON.stringify(pids)}, String(child.pid));
     process.stdout.write('done', () => process.exit(0));`,
    );
    await startWith(['gemini']);
    expect(await think()).toMatchObject({ backend: 'gemini', text: 'done' });
    await expect.poll(() => isAlive(Number(readFileSync(pids, 'utf8')))).toBe(false);
  },
);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie that nobody reaped yet is dead enough.
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

again('a program that never stops talking is ended', async () => {
  clis.add('gemini', 'const x = "y".repeat(65536); for (;;) require("node:fs").writeSync(1, x);');
  await startWith(['gemini']);
  expect((await think()).tried[0]).toEqual({
    id: 'gemini',
    outcome: 'error',
    reason: 'it answered more than 4 MiB',
  });
});

test('when the caller goes away, so does the program', async () => {
  const pids = join(home, 'pids');
  clis.add(
    'gemini',
    `require('node:fs').writeFileSync(${JSON.stringify(pids)}, String(process.pid)); setInterval(() => {}, 1000);`,
  );
  await startWith(['gemini']);
  const controller = new AbortController();
  const asking = fetch(`${daemon.url}/api/v1/think`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"prompt":"x"}',
    signal: controller.signal,
  });
  await expect.poll(() => existsSync(pids) && readFileSync(pids, 'utf8') !== '').toBe(true);
  const pid = Number(readFileSync(pids, 'utf8'));
  expect(isAlive(pid)).toBe(true);
  controller.abort();
  await expect(asking).rejects.toThrow();
  await expect.poll(() => isAlive(pid)).toBe(false);
});

again('when the daemon stops, so do its programs', async () => {
  const pids = join(home, 'pids');
  clis.add(
    'gemini',
    `require('node:fs').writeFileSync(${JSON.stringify(pids)}, String(process.pid)); setInterval(() => {}, 1000);`,
  );
  await startWith(['gemini'], { 'drain-timeout-ms': '100' });
  const asking = think().catch(() => 'cut');
  await expect.poll(() => existsSync(pids) && readFileSync(pids, 'utf8') !== '').toBe(true);
  await daemon.stop();
  expect(isAlive(Number(readFileSync(pids, 'utf8')))).toBe(false);
  await asking;
});

test('a program sees no variable of the daemon and no project', async () => {
  clis.add(
    'gemini',
    `const own = Object.keys(process.env).filter((name) => name.startsWith('MILLRACE'));
     const files = require('node:fs').readdirSync('.');
     process.stdout.write(JSON.stringify({ own, files, some: process.env.SOME_VARIABLE }));`,
  );
  await startWith(['gemini']);
  expect(JSON.parse((await think()).text)).toEqual({ own: [], files: [], some: 'passed on' });
});

again('local_only asks nobody but the local model', async () => {
  clis.add('gemini', 'process.stdout.write("gemini");');
  await startModel({
    protocol: 'openai',
    models: ['qwen', 'llama'],
    answer: (p, m) => `${m}: ${p}`,
  });
  await startWith(['gemini']);
  await daemon.api.ok('PUT', '/api/v1/backends/thinking-mode', { mode: 'local_only' });
  expect(await think('hello')).toMatchObject({ backend: 'local', text: 'qwen: hello' });
  const isFound = async () => {
    await daemon.api.ok('POST', '/api/v1/backends/rescan');
    return (await daemon.api.row('local')).installed;
  };
  await expect.poll(isFound).toBe(true);
  await daemon.api.ok('PATCH', '/api/v1/backends/local', { enabled: false });
  expect(await think()).toEqual({ backend: null, text: null, degraded: true, tried: [] });
});

again('the local model of the config is the one that is asked', async () => {
  await startModel({ protocol: 'ollama', models: ['a', 'b'], answer: (_, name) => name });
  await startWith([], { 'backends-local-model': 'b' });
  expect(await think()).toMatchObject({ backend: 'local', text: 'b' });
  expect(model!.requests).toEqual([
    { path: '/api/generate', body: { model: 'b', prompt: expect.any(String), stream: false } },
  ]);
});

test.each<[string, Partial<FakeModelOptions>, string]>([
  ['has none', { models: [] }, 'unavailable'],
  ['fails', { answer: () => 500 }, 'error'],
  ['answers nothing', { answer: () => ' ' }, 'error'],
  ['hangs', { hangs: true }, 'timeout'],
])('a local server that %s leaves a graceful no', async (_, options, outcome) => {
  await startModel({ protocol: 'ollama', ...options });
  await startWith([], options.hangs ? { 'backends-think-timeout': '500ms' } : {});
  const { degraded, tried } = await think();
  expect([degraded, tried[0].outcome]).toEqual([true, outcome]);
  expect((await daemon.api.row('local')).limited_until).toBe(null);
});

again('many thoughts at once are all answered, a few at a time', async () => {
  const running = join(home, 'running');
  clis.add(
    'gemini',
    `const fs = require('node:fs');
     fs.mkdirSync(${JSON.stringify(running)}, { recursive: true });
     fs.writeFileSync(${JSON.stringify(running)} + '/' + process.pid, '');
     const count = fs.readdirSync(${JSON.stringify(running)}).length;
     setTimeout(() => {
       fs.rmSync(${JSON.stringify(running)} + '/' + process.pid);
       process.stdout.write(String(count));
     }, 100);`,
  );
  await startWith(['gemini']);
  const answers = await Promise.all(Array.from({ length: 12 }, () => think()));
  const counts = answers.map(({ text }) => Number(text));
  expect(Math.max(...counts)).toBeLessThanOrEqual(4);
});
