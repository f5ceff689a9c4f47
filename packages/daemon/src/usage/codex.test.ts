import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { inCampaign } from '../../../../test/support/campaign.js';
import { ended, figures, UsageBench } from './usage.test-support.js';

const again = inCampaign('cases');

let bench: UsageBench;
beforeEach(async () => {
  bench = await UsageBench.start();
});
afterEach(() => bench.stop());

const unknown = [
  ['primary', null, null],
  ['secondary', null, null],
];

/** Asks a `codex` that runs this script. */
function entryOf(script: string) {
  const binaryPath = bench.codex(script);
  return bench.entry('codex', { binary_path: binaryPath });
}

function pidOf(): number {
  const pid = /^pid (\d+)$/m.exec(bench.noted().join('\n'))?.[1];
  if (pid === undefined) throw new Error('The program has not noted its pid.');
  return Number(pid);
}

const answering = (limits: object) =>
  `serve((id) => say({ id, result: { rateLimits: ${JSON.stringify(limits)}, extra: 1 } }));`;

test('two windows come from the app-server, kept separate', async () => {
  const entry = await entryOf(
    answering({
      primary: { usedPercent: 12.5, windowDurationMins: 300, resetsAt: 1_768_482_000 },
      secondary: { usedPercent: 63, windowDurationMins: 10_080, resetsAt: 1_768_780_800 },
      planType: 'pro',
    }),
  );
  expect(entry.status).toBe('ok');
  expect(entry.usage.map(({ id, label }) => [id, label])).toEqual([
    ['codex:primary', '5-hour window'],
    ['codex:secondary', 'Weekly window'],
  ]);
  expect(figures(entry)).toEqual([
    ['primary', 12.5, '2026-01-15T13:00:00.000Z'],
    ['secondary', 63, '2026-01-19T00:00:00.000Z'],
  ]);
});

test('it is asked in the words of the protocol and ended as soon as it has answered', async () => {
  await entryOf(answering({ primary: { usedPercent: 1 } }));
  const [, args, ...said] = bench.noted();
  expect(args).toBe('args app-server');
  const messages = said.map((line) => JSON.parse(line));
  expect(messages.map(({ method }) => method)).toEqual([
    'initialize',
    'initialized',
    'account/rateLimits/read',
  ]);
  expect(messages[0].params.clientInfo).toMatchObject({ name: 'millrace' });
  expect('id' in messages[1]).toBe(false);
  await ended(pidOf());
});

test('one that does not heed SIGTERM is killed, with what it started', async () => {
  const entry = await entryOf(`
    process.on('SIGTERM', () => note('asked to end'));
    const { pid } = require('node:child_process').spawn('sleep', ['600'], { stdio: 'inherit' });
    note('child ' + pid);
    setInterval(() => undefined, 1000);
    ${answering({ primary: { usedPercent: 100 }, secondary: null })}
  `);
  expect(entry.status).toBe('rate_limited');
  expect(figures(entry)).toEqual([
    ['primary', 100, null],
    ['secondary', null, null],
  ]);
  await ended(pidOf());
  await ended(Number(/^child (\d+)$/m.exec(bench.noted().join('\n'))?.[1]));
  expect(bench.noted()).toContain('asked to end');
});

test('a window that is missing or has no figure is unknown', async () => {
  const entry = await entryOf(
    answering({ primary: { usedPercent: null }, secondary: { usedPercent: 7, resetsAt: 'soon' } }),
  );
  expect([entry.status, figures(entry)]).toEqual([
    'ok',
    [
      ['primary', null, null],
      ['secondary', 7, null],
    ],
  ]);
});

describe('without an answer both rows are null', () => {
  const refusing = (error: object) =>
    `serve((id) => say({ id, error: ${JSON.stringify(error)} }));`;
  const cases: readonly [what: string, script: string, status: string, error: string][] = [
    [
      'no login',
      refusing({
        code: -32600,
        message: 'codex account authentication required to read rate limits',
      }),
      'unauthenticated',
      'codex login',
    ],
    [
      'an API key',
      refusing({ code: -32600, message: 'chatgpt authentication required to read rate limits' }),
      'unsupported',
      'an API key cannot ask',
    ],
    [
      'a login that the provider refuses',
      refusing({ code: -32603, message: 'failed to fetch codex rate limits: 401 Unauthorized' }),
      'unauthenticated',
      'no valid login',
    ],
    [
      'too many requests',
      refusing({ code: -32603, message: 'failed to fetch codex rate limits: 429; req_123' }),
      'unavailable',
      'too many requests',
    ],
    [
      'a fault',
      refusing({ code: -32603, message: 'error sending' }),
      'unavailable',
      'could not ask',
    ],
    ['an old version', refusing({ code: -32601, message: 'x' }), 'unsupported', 'update it'],
    ['no limits', 'serve((id) => say({ id, result: {} }));', 'error', 'has no rate limits'],
    ['nothing at all', 'serve((id) => say({ id }));', 'error', 'has no rate limits'],
    ['a crash', 'process.exit(3);', 'unavailable', 'ended without an answer'],
    ['a crash in mid-talk', 'serve(() => process.exit(3));', 'unavailable', 'without an answer'],
    ['garbage', "process.stdout.write('so\\nlong\\n');", 'error', 'makes no sense'],
    ['another language', "process.stdout.write('[1]\\n7\\n');", 'error', 'makes no sense'],
    [
      'a line without an end',
      "setInterval(() => process.stdout.write('x'.repeat(65536)), 1);",
      'error',
      'makes no sense',
    ],
  ];
  test.for(cases)('%s', async ([, script, status, error]) => {
    const entry = await entryOf(script);
    expect([entry.status, figures(entry)]).toEqual([status, unknown]);
    expect(entry.error).toContain(error);
    await ended(pidOf());
  });

  test('one that never answers is ended after three seconds', () =>
    expectEnded('setInterval(() => undefined, 1000);'));
  again.each([
    ['answers too late', 'serve((id) => setTimeout(() => say({ id, result: {} }), 20_000));'],
    ['talks without end', "setInterval(() => say({ method: 'news' }), 5);"],
  ] as const)('one that %s is ended after three seconds', ([, script]) => expectEnded(script));

  async function expectEnded(script: string): Promise<void> {
    const start = performance.now();
    const entry = await entryOf(script);
    expect([entry.status, figures(entry)]).toEqual(['timeout', unknown]);
    expect(performance.now() - start).toBeGreaterThan(2_900);
    expect(performance.now() - start).toBeLessThan(20_000);
    await ended(pidOf());
  }

  test('one that leaves a child behind which holds the pipe', async () => {
    const entry = await entryOf(`
      const { spawn } = require('node:child_process');
      const child = spawn('sleep', ['600'], { stdio: 'inherit' });
      note('child ' + child.pid);
      process.exit(0);
    `);
    expect([entry.status, figures(entry)]).toEqual(['unavailable', unknown]);
    await ended(Number(/^child (\d+)$/m.exec(bench.noted().join('\n'))?.[1]));
  });
});

describe('which program is asked', () => {
  test('one that is not installed is not looked for', async () => {
    bench.codex(answering({ primary: { usedPercent: 5 } }));
    bench.environment['PATH'] = `${bench.home}/bin:${bench.environment['PATH']}`;
    const entry = await bench.entry('codex', { installed: false });
    expect([entry.status, figures(entry)]).toEqual(['not_installed', unknown]);
    expect(entry).toMatchObject({ observed_at: null, installed: false });
  });

  test('one that went away since it was found', async () => {
    const entry = await bench.entry('codex', { binary_path: `${bench.home}/gone` });
    expect([entry.status, figures(entry)]).toEqual(['not_installed', unknown]);
  });

  test('one that may not be run', async () => {
    const binaryPath = bench.write('plain', 'no program');
    const entry = await bench.entry('codex', { binary_path: binaryPath });
    expect([entry.status, figures(entry)]).toEqual(['unavailable', unknown]);
  });

  test('the one that the settings name comes before the one that was found', async () => {
    const command = bench.codex(answering({ primary: { usedPercent: 5 } }));
    const row = { installed: false, binary_path: `${bench.home}/gone` };
    expect(await bench.entry('codex', row, { codex: { command } })).toMatchObject({ status: 'ok' });
  });
});

test('closing ends a process that is still under way', async () => {
  const binaryPath = bench.codex("process.on('SIGTERM', () => 0); setInterval(() => 0, 1000);");
  bench.rows = [
    { id: 'codex', tier: 'subscription', installed: true, enabled: true, binary_path: binaryPath },
  ];
  // Its own time is never up.
  const { after } = bench.clock;
  bench.clock.after = (delayMs, run) => after(delayMs > 2_000 ? 3_600_000 : delayMs, run);
  const usage = bench.usage();
  const reading = usage.read();
  const pid = await vi.waitFor(pidOf, { timeout: 60_000 });
  await usage.close();
  expect((await reading).backends[0]).toMatchObject({ status: 'timeout' });
  await ended(pid);
});
