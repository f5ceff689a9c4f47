import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addressFile } from '@millrace/daemon/config';
import { seededRandom } from '@millrace/kit/random';
import { afterEach, expect, test } from 'vitest';
import { ApiClient } from './support/client.js';
import { noLocalModel } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';

const ctl = fileURLToPath(new URL('../../../bin/ctl', import.meta.url));
const children: ChildProcess[] = [];
const directories: string[] = [];

afterEach(() => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
  for (const made of directories.splice(0)) rmSync(made, { recursive: true, force: true });
});

function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), 'mr-process-'));
  directories.push(home);
  return home;
}

interface Run {
  child: ChildProcess;
  stdout: () => string;
  stderr: () => string;
  ended: Promise<number | string>;
}

function run(home: string, args: string[] = [], environment: Record<string, string> = {}): Run {
  // Access has tests of its own; the last of two equal flags counts.
  const flags = ['--auth=none', '--listen=127.0.0.1:0', `--backends-local-url=${noLocalModel}`];
  const child = spawn(process.execPath, [ctl, 'daemon', 'serve', ...flags, ...args], {
    env: {
      PATH: `${join(home, 'bin')}:${process.env['PATH']}`,
      HOME: home,
      XDG_CONFIG_HOME: join(home, 'config'),
      XDG_DATA_HOME: join(home, 'share'),
      ...environment,
    },
  });
  children.push(child);
  let [out, err] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (err += bytes.toString()));
  const ended = new Promise<number | string>((resolve) => {
    child.on('close', (code, signal) => resolve(code ?? signal ?? 'gone'));
  });
  return { child, stdout: () => out, stderr: () => err, ended };
}

async function listening({ stdout, stderr, ended }: Run): Promise<ApiClient> {
  void ended.then((code) => code);
  await expect
    .poll(() => stdout().includes('\n') || stderr().includes('UsageError'), { timeout: 60_000 })
    .toBe(true);
  const event = JSON.parse(stdout().split('\n')[0]!) as Record<string, string>;
  expect(event).toMatchObject({ event: 'listening', component: 'daemon', listener: 'http' });
  return new ApiClient(event['url']!);
}

test('it says where it listens, keeps to the XDG directories, and ends well on SIGTERM', async () => {
  const home = newHome();
  mkdirSync(join(home, 'config', 'millrace'), { recursive: true });
  const file = join(home, 'config', 'millrace', 'config.yaml');
  writeFileSync(
    file,
    'tokens.warn: 300k\nautopilot: {brain: {backends: {free: [gemini]}}}\nodd: 1\n',
  );
  const daemon = run(home);
  const api = await listening(daemon);
  const dataDir = join(home, 'share', 'millrace');
  expect(readFileSync(addressFile(dataDir), 'utf8')).toBe(`${api.url}\n`);
  const view = await api.ok('GET', '/api/v1/config');
  expect(view).toMatchObject({ config_file: file, data_dir: dataDir });
  expect(view.warnings).toEqual([
    expect.stringMatching(/config\.yaml:3: unknown key "odd"/) as string,
    expect.stringMatching(
      /config\.yaml:2: autopilot\.brain\.backends\.free is deprecated/,
    ) as string,
  ]);
  expect((await api.row('gemini')).tier).toBe('free');
  daemon.child.kill('SIGTERM');
  expect(await daemon.ended).toBe(0);
  expect(existsSync(addressFile(dataDir))).toBe(false);
  expect(daemon.stdout().trim().split('\n')).toHaveLength(1);
  for (const warning of view.warnings) {
    expect(daemon.stderr()).toContain(JSON.stringify(warning).slice(1, -1));
  }
});

test('process: a second daemon on the same data names the holder of the lock', async () => {
  const home = newHome();
  const first = run(home);
  const api = await listening(first);
  const second = run(home);
  expect(await second.ended).toBe(2);
  expect(second.stderr()).toMatch(/process|pid/i);
  expect(second.stdout()).toBe('');
  expect(readFileSync(addressFile(join(home, 'share', 'millrace')), 'utf8')).toBe(`${api.url}\n`);
  await api.registry();
});

test('it does not start where others can reach it without a token', async () => {
  const home = newHome();
  const daemon = run(home, ['--listen=0.0.0.0:0', '--auth=token']);
  expect(await daemon.ended).toBe(2);
  expect(daemon.stderr()).toContain('there is no token');
  expect(daemon.stdout()).toBe('');
});

/** What may be found after a crash: the last answered write, or one that was still under way. */
class Ledger {
  answered = 0;
  readonly #possible = new Map<string, string[]>();

  async write(key: string, value: string, send: () => Promise<unknown>): Promise<void> {
    this.#possible.set(key, [...(this.#possible.get(key) ?? []), value]);
    await send();
    this.#possible.set(key, [value]);
    this.answered++;
  }

  /** Fails unless this value may be there, which from now on is the only one. */
  check(key: string, found: string): void {
    const possible = this.#possible.get(key);
    if (possible) expect([key, possible]).toEqual([key, expect.arrayContaining([found])]);
    this.#possible.set(key, [found]);
  }
}

test('what was answered is there after kill -9', async () => {
  const home = newHome();
  const clis = new FakeClis(join(home, 'bin'));
  const ids = ['amp', 'claude', 'gemini', 'goose'];
  clis.addEmpty(...ids);
  const random = seededRandom(7);
  const pick = <T>(list: readonly T[]) => list[random.integer(0, list.length - 1)]!;
  const tiers = ['free', 'subscription', 'pay_per_use', 'unclassified'];
  const ledger = new Ledger();

  for (let round = 0; round < 4; round++) {
    const daemon = run(home);
    const api = await listening(daemon);
    const { backends } = await api.registry();
    const defaults = backends.filter((each) => each.default).map((each) => each.id);
    expect(defaults.length).toBeLessThanOrEqual(1);
    ledger.check('default', defaults[0] ?? 'none');
    for (const { id, tier } of backends) ledger.check(id, tier);

    let isKilled = false;
    // Each backend has one writer, so that its answers have an order.
    const tierWriter = async (id: string) => {
      while (!isKilled) {
        const tier = pick(tiers);
        await ledger.write(id, tier, () => api.ok('PATCH', `/api/v1/backends/${id}`, { tier }));
      }
    };
    const defaultWriter = async () => {
      while (!isKilled) {
        const id = pick(ids);
        await ledger.write('default', id, () => api.ok('PUT', '/api/v1/backends/default', { id }));
        await api.ok('POST', '/api/v1/backends/rescan');
      }
    };
    const gone = (error: Error) => {
      if (!isKilled) throw error;
    };
    const working = [...ids.map(tierWriter), defaultWriter()].map((work) => work.catch(gone));
    const wanted = ledger.answered + random.integer(15, 60);
    await expect
      .poll(() => ledger.answered, { timeout: 60_000, interval: 5 })
      .toBeGreaterThan(wanted);
    isKilled = true;
    daemon.child.kill('SIGKILL');
    expect(await daemon.ended).toBe('SIGKILL');
    await Promise.all(working);
  }
  expect(ledger.answered).toBeGreaterThan(50);
});
