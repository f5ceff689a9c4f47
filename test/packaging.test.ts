import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ctlHere } from '../packages/ctl/test/run-ctl.js';
import { inCampaign } from './support/campaign.js';
import { root } from './support/markdown.js';

const again = inCampaign('process');

/* As much of the image and the services as can be tried without an engine that runs them. */

const packaging = join(root, 'packaging');
const read = (file: string) => readFileSync(join(packaging, file), 'utf8');

const instructions = read('Containerfile')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .filter((line) => line.trim() !== '')
  .map((line) => {
    const [, name = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    return { name, rest };
  });
const all = (name: string) =>
  instructions.filter((one) => one.name === name).map(({ rest }) => rest);

/** Whether ctl accepts these words. */
async function expectCommand(words: readonly string[]): Promise<void> {
  expect(await ctlHere([...words, '--help'])).toMatchObject({ code: 0, err: '' });
}

describe('Containerfile', () => {
  test('everything that the image copies is there', () => {
    const sources = all('COPY')
      .filter((rest) => !rest.startsWith('--from='))
      .flatMap((rest) => rest.split(/\s+/).slice(0, -1));
    expect(sources.length).toBeGreaterThan(3);
    expect(sources.filter((source) => !existsSync(join(root, source)))).toEqual([]);
  });

  test('the image runs as a user without privileges and keeps data in a volume', () => {
    expect(all('USER')).toEqual(['node']);
    expect(all('VOLUME')).toEqual(['/data']);
  });

  const wordsIn = (name: string) => JSON.parse(/\[.*\]/.exec(all(name)[0]!)![0]) as string[];

  test('ctl takes the words of CMD, and the entry point those of the health check', async () => {
    await expectCommand(wordsIn('CMD'));
    expect(wordsIn('HEALTHCHECK')).toEqual(['/bin/sh', '/opt/millrace/entrypoint.sh', 'health']);
    expect(wordsIn('ENTRYPOINT')).toContain('/opt/millrace/entrypoint.sh');
  });
});

interface ComposeService {
  command?: string[];
  depends_on?: Record<string, object>;
  volumes?: string[];
  ports?: string[];
}

describe.each(['compose.yaml', 'compose.scale.yaml'])('%s', (file) => {
  const compose = parse(read(file), { merge: true }) as {
    services: Record<string, ComposeService>;
    volumes: Record<string, null>;
  };
  const services = Object.values(compose.services);

  test('volumes and services that are named exist', () => {
    const volumes = services.flatMap((one) =>
      (one.volumes ?? []).map((name) => name.split(':')[0]!),
    );
    expect(volumes.length).toBeGreaterThan(0);
    expect([...new Set(volumes)].toSorted()).toEqual(Object.keys(compose.volumes).toSorted());
    const wanted = services.flatMap((one) => Object.keys(one.depends_on ?? {}));
    expect(wanted.filter((name) => !(name in compose.services))).toEqual([]);
  });

  test('ports are open to this machine only', () => {
    const ports = services.flatMap((one) => one.ports ?? []);
    expect(ports.length).toBeGreaterThan(0);
    expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
  });

  test('ctl takes the commands', async () => {
    for (const { command } of services) if (command) await expectCommand(command);
  });
});

test.each(readdirSync(join(packaging, 'systemd')))(
  '%s is a valid unit with a valid command',
  async (file) => {
    const unit = read(`systemd/${file}`);
    const [, words = ''] = /^ExecStart=\/usr\/bin\/env millrace (.*)$/m.exec(unit) ?? [];
    await expectCommand(words.split(' '));
    for (const line of ['NoNewPrivileges=true', 'ProtectControlGroups=true', 'UMask=0077']) {
      expect(unit).toContain(`\n${line}\n`);
    }
    const analyze = spawnSync('systemd-analyze', ['verify', join(packaging, 'systemd', file)], {
      encoding: 'utf8',
    });
    // Not everywhere; the lines above are checked everywhere.
    if (analyze.error === undefined) expect(analyze.status, analyze.stderr).toBe(0);
  },
);

describe('entry point of the image', () => {
  let folder: string;
  let children: ChildProcess[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'millrace-image-'));
    children = [];
    mkdirSync(join(folder, 'bin'));
  });
  afterEach(async () => {
    await Promise.all(children.map(stop));
    rmSync(folder, { recursive: true, force: true });
  });

  function stop(child: ChildProcess): Promise<unknown> {
    if (child.exitCode !== null) return Promise.resolve();
    const ended = new Promise((resolve) => child.on('close', resolve));
    child.kill('SIGTERM');
    return ended;
  }

  function start(args: readonly string[], program: string, env: Record<string, string> = {}) {
    writeFileSync(join(folder, 'bin', 'millrace'), program, { mode: 0o755 });
    const child = spawn('/bin/sh', [join(packaging, 'entrypoint.sh'), ...args], {
      env: {
        PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
        HOME: folder,
        MILLRACE_DATA_DIR: join(folder, 'data'),
        ...env,
      },
    });
    children.push(child);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (bytes: Buffer) => (text += bytes.toString()));
    }
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    return { child, ended, text: () => text };
  }

  const real = `#!/bin/sh\nexec "${process.execPath}" "${join(root, 'bin', 'ctl')}" "$@"\n`;
  const anyPort = Object.fromEntries(
    ['LISTEN', 'QUEUE_LISTEN', 'QUEUE_GRPC', 'QUEUE_METRICS_LISTEN', 'DB_GRPC', 'DB_HTTP'].map(
      (name) => [`MILLRACE_${name}`, '127.0.0.1:0'],
    ),
  );

  test('the servers listen on all interfaces', async () => {
    const echo = '#!/bin/sh\necho "$@"; env | grep MILLRACE_ | sort\n';
    const { ended, text } = start(['help'], echo);
    expect(await ended).toBe(0);
    expect(text()).toMatch(/^help\n/);
    for (const setting of [
      'LISTEN=0.0.0.0:8765',
      'QUEUE_LISTEN=0.0.0.0:8081',
      'QUEUE_GRPC=0.0.0.0:8082',
      'DB_GRPC=0.0.0.0:5433',
    ]) {
      expect(text()).toContain(`MILLRACE_${setting}\n`);
    }
  });

  /** What the word `tokens` prints, by the name of the server. */
  async function printedTokens(): Promise<Readonly<Record<string, string>>> {
    const { ended, text } = start(['tokens'], real);
    expect(await ended).toBe(0);
    const lines = text().split('\n').slice(0, -1);
    return Object.fromEntries(lines.map((line) => line.split(': ') as [string, string]));
  }

  test('up: the first start makes tokens that work and are not in the log', async () => {
    const first = start([], real, anyPort);
    await expect.poll(first.text, { timeout: 90_000 }).toContain('Ctrl-C stops everything');
    const tokens = await printedTokens();
    expect(Object.keys(tokens)).toEqual(['daemon', 'queue', 'database']);
    for (const token of Object.values(tokens)) expect(first.text()).not.toContain(token);
    expect(first.text()).toContain('new token of the queue in ');
    const daemon = /daemon +(http:\S+)/.exec(first.text())![1];
    const queue = /queue +(http:\S+)/.exec(first.text())![1];
    const db = /database.*\n? *(http:\S+)/.exec(first.text().replace(/grpc:\S+/, ''))![1];
    const status = async (url: string, headers: Record<string, string> = {}) =>
      (await fetch(url, { headers })).status;
    const bearer = (of: string) => ({ authorization: `Bearer ${tokens[of]}` });
    expect(await status(`${daemon}/api/v1/backends`)).toBe(401);
    expect(await status(`${daemon}/api/v1/backends`, bearer('daemon'))).toBe(200);
    expect(await status(`${queue}/v1/admin/queues`)).toBe(401);
    expect(await status(`${queue}/v1/admin/queues`, bearer('queue'))).toBe(200);
    expect(await status(`${db}/v1/admin/replication`)).toBe(401);
    expect(await status(`${db}/v1/admin/replication`, bearer('database'))).toBe(200);
    await stop(first.child);
    expect(first.child.exitCode).toBe(0);

    const second = start(['up'], real, anyPort);
    await expect.poll(second.text, { timeout: 90_000 }).toContain('Ctrl-C stops everything');
    expect(second.text()).not.toContain('new token');
  });

  again('queue serve: works alone with the token it makes', async () => {
    const { text } = start(['queue', 'serve'], real, anyPort);
    const listening = /"listener":"http","url":"([^"]+)"/;
    await expect.poll(text, { timeout: 90_000 }).toMatch(listening);
    const { queue: token } = await printedTokens();
    expect(text()).not.toContain(token);
    const { origin, host } = new URL(listening.exec(text())![1]!);
    const url = `${origin}/v1/admin/queues`;
    const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    expect(answer.status).toBe(200);
    // The health check of a container with one server does not ask for the others.
    const health = (...words: string[]) =>
      start(['health', ...words], real, { MILLRACE_QUEUE_LISTEN: host, MILLRACE_DB_HTTP: 'x:1' });
    expect(await health('queue', 'serve').ended).toBe(0);
    expect(await health('db', 'serve').ended).toBe(1);
    expect(await health('up').ended).toBe(1);
  });
});
