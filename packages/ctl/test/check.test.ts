import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { CTL, startCtl, type Ended } from './run-ctl.js';

const again = inCampaign('process');

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'ctl-check-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const dataDir = () => join(home, '.local', 'share', 'millrace');
const start = (args: string[], env: Record<string, string> = {}, input?: string) =>
  startCtl(args, { HOME: home, ...env }, { cwd: home, ...(input !== undefined && { input }) });
const check = (script: string, env: Record<string, string> = {}, input = ''): Promise<Ended> =>
  start(['check', '--', 'sh', '-c', script], env, input).ended;

function ledger(): Record<string, unknown>[] {
  const text = readFileSync(join(dataDir(), 'savings', 'ledger.jsonl'), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function logs(): string[] {
  const folder = join(dataDir(), 'logs', 'check');
  return readdirSync(folder).map((name) => join(folder, name));
}

const noisy =
  'i=0; while [ $i -lt 500 ]; do echo "compiling part $i"; i=$((i+1)); done; ' +
  'echo "FAIL wheel.test.ts" >&2; echo "  expected 1, got 2"; echo; echo "Tests 1 failed, 20 passed"; exit 3';

test('a long output is shortened, kept whole on disk, and entered in the ledger', async () => {
  const { code, out, err } = await check(noisy);
  expect([code, err]).toEqual([3, '']);
  const [log] = logs();
  const whole = readFileSync(log!, 'utf8');
  const lines = whole.split('\n');
  // Both streams are there, in the order in which they were written.
  expect(lines).toHaveLength(505);
  expect(lines.slice(499, 502)).toEqual([
    'compiling part 499',
    'FAIL wheel.test.ts',
    '  expected 1, got 2',
  ]);
  expect(out.replace(/after [\d.ms ]+,/, 'after T,')).toBe(`... 499 lines omitted
compiling part 499
FAIL wheel.test.ts
  expected 1, got 2

Tests 1 failed, 20 passed
ctl: exit code 3 after T, 499 of 504 lines omitted; full log: ${log}
`);
  expect(ledger()).toEqual([
    {
      ts: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      feature: 'check',
      agent_id: null,
      repo: null,
      raw_bytes: Buffer.byteLength(whole),
      kept_bytes: Buffer.byteLength(out),
      raw_tokens: Math.ceil(Buffer.byteLength(whole) / 4),
      kept_tokens: Math.ceil(Buffer.byteLength(out) / 4),
      basis: 'HEURISTIC',
    },
  ]);
});

test('a short output is shown as it is, and is an event that saved nothing', async () => {
  expect(await check('printf hello; printf world >&2')).toMatchObject({
    code: 0,
    out: 'helloworld',
    err: '',
  });
  expect(ledger()).toMatchObject([{ raw_bytes: 10, kept_bytes: 10 }]);
});

again('what is no text is passed on byte by byte', async () => {
  const script = "printf '\\377\\200\\000x'";
  const { out } = await check(`${script} | od -An -tx1; exit 0`);
  const { child } = start(['check', '--', 'sh', '-c', script], {}, '');
  const chunks: Buffer[] = [];
  child.stdout.removeAllListeners('data').setEncoding('latin1');
  child.stdout.on('data', (text: string) => chunks.push(Buffer.from(text, 'latin1')));
  await once(child, 'close');
  expect(Buffer.concat(chunks).toString('hex')).toBe(out.replaceAll(/\s/g, ''));
});

test('the command has stdin, its own options, and its exit code is that of ctl', async () => {
  expect((await check('read word; echo "got $word"', {}, 'water\n')).out).toBe('got water\n');
  const printed = await start(['check', '--', 'printf', '%s|', '--', '--json', '-h', 'a b'], {}, '')
    .ended;
  expect(printed.out).toBe('--|--json|-h|a b|');
  for (const code of [0, 1, 2, 77, 255]) expect((await check(`exit ${code}`)).code).toBe(code);
  expect((await check('kill -KILL $$')).code).toBe(137);
});

again('a failure that says nothing is reported: what was run, and how it ended', async () => {
  const run = (...command: string[]) => start(['check', '--', ...command], {}, '').ended;
  const silent = await run('false');
  expect([silent.code, silent.out]).toEqual([1, '']);
  expect(silent.err).toMatch(
    /^ctl: `false` failed with exit code 1 after [\d.]+ ?m?s and printed nothing\n$/,
  );
  const killed = await check('echo half; kill -KILL $$');
  expect([killed.code, killed.out]).toEqual([137, 'half\n']);
  expect(killed.err).toMatch(
    /^ctl: `sh -c echo half; kill -KILL \$\$` was killed by SIGKILL \(exit code 137\) after [\d.]+ ?m?s\n$/,
  );
  expect(await check('echo why; exit 3')).toMatchObject({ code: 3, out: 'why\n', err: '' });
  expect(await run('true')).toMatchObject({ code: 0, out: '', err: '' });
  const json = await start(['check', '--json', '--', 'false'], {}, '').ended;
  expect([json.code, json.err, JSON.parse(json.out).exit_code]).toEqual([1, '', 1]);
});

again('what cannot be run is said, with the exit codes of shells', async () => {
  const missing = await start(['check', '--', 'no-such-program'], {}, '').ended;
  expect(missing).toMatchObject({
    code: 127,
    out: '',
    err: 'ctl: there is no program "no-such-program"\n',
  });
  writeFileSync(join(home, 'plain'), 'text');
  const plain = await start(['check', '--', join(home, 'plain')], {}, '').ended;
  expect([plain.code, plain.out]).toEqual([126, '']);
  expect(plain.err).toMatch(/is not executable/);
  expect((await start(['check'], {}, '').ended).code).toBe(2);
  expect(logs()).toEqual([]);
});

describe('signals', () => {
  const patient =
    'trap "echo told $(date +%s) TERM; exit 9" TERM; trap "echo told INT; exit 8" INT; ' +
    'trap "echo told HUP; exit 7" HUP; echo ready > ready; while :; do sleep 0.05; done';

  test.each([
    ['SIGTERM', 9],
    ['SIGINT', 8],
    ['SIGHUP', 7],
  ] as const)('%s goes to the command, which ends as it likes', async (signal, code) => {
    const { child, ended } = start(['check', '--', 'sh', '-c', patient], {}, '');
    await until(() => readdirSync(home).includes('ready'));
    child.kill(signal);
    const end = await ended;
    expect([end.code, end.signal]).toEqual([code, null]);
    expect(end.out).toContain(`told`);
    expect(ledger()).toHaveLength(1);
  });

  again('a command that does not care goes on, and ctl waits for it', async () => {
    const deaf = 'trap "" TERM INT; echo > ready; sleep 1; echo done; exit 4';
    const { child, ended } = start(['check', '--', 'sh', '-c', deaf], {}, '');
    await until(() => readdirSync(home).includes('ready'));
    for (const signal of ['SIGINT', 'SIGINT', 'SIGTERM'] as const) child.kill(signal);
    expect(await ended).toMatchObject({ code: 4, out: 'done\n' });
  });
});

const hasScript = spawnSync('script', ['--version']).status === 0;

test.skipIf(!hasScript)(
  'Ctrl-C reaches the command once (needs the program script of util-linux)',
  async () => {
    writeFileSync(
      join(home, 'counting'),
      'n=0\ntrap \'n=$((n+1)); echo "interrupted $n"\' INT\necho > ready\n' +
        'i=0; while [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); done\nexit 5\n',
    );
    // In place of the shell, which has a mind of its own about Ctrl-C.
    const command = `exec '${process.execPath}' '${CTL}' check -- sh counting`;
    const env = { HOME: home, PATH: process.env['PATH'] ?? '', TERM: 'xterm' };
    const child = spawn('script', ['-qec', command, '/dev/null'], { cwd: home, env });
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
    await until(() => readdirSync(home).includes('ready'));
    child.stdin.write('\u0003');
    const [code] = await once(child, 'close');
    expect([code, out]).toEqual([5, expect.stringContaining('interrupted 1\r\n')]);
    expect(out).not.toContain('interrupted 2');
    expect(out).toContain('sh counting (1s, ');
  },
);

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 20));
}

test('--json has the figures and the short form, and stdout has nothing else', async () => {
  const { code, out } = await start(['check', '--json', '--', 'sh', '-c', noisy], {}, '').ended;
  expect(code).toBe(3);
  const document = JSON.parse(out) as Record<string, unknown>;
  expect(document).toMatchObject({
    command: ['sh', '-c', noisy],
    exit_code: 3,
    signal: null,
    log: logs()[0],
    lines: 504,
    basis: 'HEURISTIC',
    output: expect.stringContaining('FAIL wheel.test.ts'),
  });
  const [line] = ledger();
  for (const field of ['raw_bytes', 'kept_bytes', 'raw_tokens', 'kept_tokens']) {
    expect([field, document[field]]).toEqual([field, line![field]]);
  }
});

again('the repository and the agent are on record', async () => {
  const repo = join(home, 'mill');
  mkdirSync(join(repo, 'src'), { recursive: true });
  execFileSync('git', ['init', '-q'], { cwd: repo });
  await startCtl(
    ['check', '--', 'true'],
    { HOME: home, MILLRACE_AGENT_ID: 'agent-7' },
    { cwd: join(repo, 'src'), input: '' },
  ).ended;
  expect(ledger()).toMatchObject([{ repo, agent_id: 'agent-7' }]);
});

test('settings count: savings off, samples on, a calibrated ratio, another data directory', async () => {
  await check('true', { MILLRACE_SAVINGS: 'off' });
  expect(() => ledger()).toThrow(/ENOENT/);
  mkdirSync(join(home, '.config', 'millrace'), { recursive: true });
  writeFileSync(join(home, '.config', 'millrace', 'config.yaml'), 'savings_samples: true\n');
  await check(noisy);
  const [sample] = readdirSync(join(dataDir(), 'savings', 'samples'));
  const pair = JSON.parse(readFileSync(join(dataDir(), 'savings', 'samples', sample!), 'utf8'));
  expect(pair).toMatchObject({ feature: 'check', kept: expect.stringContaining('FAIL wheel') });
  expect(pair.raw).toContain('compiling part 250\n');
  writeFileSync(join(dataDir(), 'savings', 'calibration.json'), '{"bytes_per_token":2}');
  await check('printf 1234');
  expect(ledger().at(-1)).toMatchObject({ raw_tokens: 2, basis: 'CALIBRATED' });
  const other = join(home, 'elsewhere');
  await start(['check', '--data', other, '--', 'true'], {}, '').ended;
  expect(readdirSync(other).toSorted()).toEqual(['logs', 'savings']);
});

again('where nothing can be kept the command runs all the same, and says so', async () => {
  writeFileSync(join(home, 'blocked'), '');
  const blocked = { MILLRACE_DATA_DIR: join(home, 'blocked') };
  const { code, out, err } = await check('echo hello; exit 5', blocked);
  expect([code, out]).toEqual([5, 'hello\n']);
  expect(err).toMatch(/^ctl: The output is not shortened: /);
  const unsure = await check('echo hello', { MILLRACE_SAVINGS: 'perhaps' });
  expect([unsure.code, unsure.out]).toEqual([0, 'hello\n']);
  expect(unsure.err).toContain('MILLRACE_SAVINGS');
  mkdirSync(join(dataDir(), 'savings', 'ledger.jsonl'), { recursive: true });
  const unwritten = await check('echo hello; exit 6');
  expect([unwritten.code, unwritten.out]).toEqual([6, 'hello\n']);
  expect(unwritten.err).toMatch(/^ctl: The saving could not be recorded: /);
});

test('checks that run at the same time all reach the ledger', async () => {
  await Promise.all(Array.from({ length: 6 }, (_, at) => check(`echo run ${at}`)));
  expect(ledger()).toHaveLength(6);
  expect(logs()).toHaveLength(6);
});

again('an output of many megabytes is shortened too', async () => {
  const script =
    'yes "a line that says nothing in particular" | head -n 500000; echo "error: end"; exit 1';
  const { code, out } = await check(script);
  expect(code).toBe(1);
  expect(out.length).toBeLessThan(1_500);
  expect(out).toContain('error: end\n');
  expect(out).toMatch(/of 500001 lines omitted/);
});
