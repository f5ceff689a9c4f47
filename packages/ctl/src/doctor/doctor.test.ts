import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Part } from '../up/parts.js';
import { examine } from './check.js';
import { credentialsCheck } from './credentials.js';
import { dataCheck } from './doctor.js';
import { portChecks } from './doctor.js';
import { isAtLeast, nodeCheck, programChecks } from './programs.js';

const { signal } = new AbortController();
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ctl-doctor-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('node', () => {
  test('a version that is old enough to lack what we use is a failure that says what to install', async () => {
    expect(await nodeCheck().run()).toEqual({ status: 'ok', finding: process.versions.node });
    expect(await nodeCheck('18.20.0').run()).toEqual({
      status: 'fail',
      finding: '18.20.0 is too old',
      advice: 'Install Node 20.19.0 or later: https://nodejs.org',
    });
  });

  test('versions are compared as numbers', () => {
    expect(isAtLeast('20.19.0', '20.19.0')).toBe(true);
    expect(isAtLeast('20.9.0', '20.19.0')).toBe(false);
    expect(isAtLeast('100.0.0-nightly', '20.19.0')).toBe(true);
    expect(isAtLeast('11', '10.0.0')).toBe(true);
  });
});

describe('credentials', () => {
  test('credentials: a tokens, keys or secrets file that others can read is a warning', async () => {
    const data = join(folder, 'exposed');
    await mkdir(join(data, 'db'), { recursive: true });
    const run = () => credentialsCheck(data, {}).run();
    const own = join(data, 'db', 'db.key');
    await writeFile(own, 'a.b\n', { mode: 0o600 });
    const secrets = join(folder, 'secrets.yaml');
    await writeFile(secrets, 'secrets: []\n', { mode: 0o600 });
    await writeFile(join(data, 'queue.yaml'), `secrets_file: ${secrets}\n`);
    expect((await run()).status).toBe('ok');
    await chmod(own, 0o644);
    await chmod(secrets, 0o640);
    expect(await run()).toEqual({
      status: 'warn',
      finding: `other users can read ${own}, ${secrets}`,
      advice: `Run: chmod 600 ${own} ${secrets}`,
    });
    await writeFile(join(data, 'queue.yaml'), 'no_such_setting: 1\n');
    expect(await run()).toMatchObject({
      status: 'warn',
      finding: expect.stringContaining('queue.yaml'),
    });
  });
});

describe('programs', () => {
  test('each is reported apart: there, too old, broken, missing', async () => {
    const bin = join(folder, 'bin');
    await mkdir(bin);
    const script = (name: string, body: string) =>
      writeFile(join(bin, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
    await script('npm', 'echo 9.8.7');
    await script('git', 'echo git version 2.39.5');
    await script('tmux', 'echo lost library >&2; exit 127');
    await writeFile(join(bin, 'gh'), '', { mode: 0o644 });
    const unusable = await examine(programChecks({ PATH: bin }, signal));
    expect(unusable.find(({ name }) => name === 'gh')?.finding).toBe(
      'does not run: a file of that name on PATH is not executable',
    );
    await rm(join(bin, 'gh'));
    const reports = await examine(programChecks({ PATH: bin }, signal));
    expect(
      reports.map(({ name, status, finding }) => [name, status, finding.split(':')[0]]),
    ).toEqual([
      ['npm', 'warn', '9.8.7 is too old'],
      ['git', 'ok', '2.39.5'],
      ['tmux', 'warn', 'does not run'],
      ['gh', 'warn', 'not found'],
    ]);
    expect(reports.filter(({ status, advice }) => status !== 'ok' && !advice)).toEqual([]);
  });
});

describe('data directory', () => {
  test('one that does not exist is fine and is not made', async () => {
    const path = join(folder, 'a', 'b');
    expect(await dataCheck(path).run()).toMatchObject({ status: 'ok' });
    expect(await readdir(folder)).not.toContain('a');
  });

  test('one of our own is written to and left as it was', async () => {
    const path = join(folder, 'mine');
    await mkdir(path, { mode: 0o700 });
    expect(await dataCheck(path).run()).toMatchObject({ status: 'ok' });
    expect(await readdir(path)).toEqual([]);
  });

  test('one that others can read is a warning', async () => {
    const path = join(folder, 'open');
    await mkdir(path);
    await chmod(path, 0o755);
    expect(await dataCheck(path).run()).toMatchObject({
      status: 'warn',
      advice: `Run: chmod 700 ${path}`,
    });
  });

  test('a file, or a path through a file, is a failure', async () => {
    const file = join(folder, 'file');
    await writeFile(file, '');
    expect(await dataCheck(file).run()).toMatchObject({ status: 'fail' });
    expect(await dataCheck(join(file, 'below')).run()).toMatchObject({ status: 'fail' });
  });
});

describe('ports', () => {
  test('a taken port is a warning that names who has it; a free one is fine', async () => {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    const part: Part = {
      name: 'queue',
      title: 'mill',
      addresses: [{ listener: 'http', port, url: '' }],
      listeners: [],
    };
    const [taken] = await examine(portChecks([part], signal));
    await new Promise((done) => server.close(done));
    const [free] = await examine(portChecks([part], signal));

    expect(taken).toMatchObject({ name: `port ${port}`, status: 'warn' });
    expect(taken?.finding).toContain(`(pid ${process.pid})`);
    expect(free).toEqual({ name: `port ${port}`, status: 'ok', finding: 'free (mill, http)' });
  });

  test.each(['ctl', 'millrace.js'])('a port taken by the server of %s is fine', async (name) => {
    const script = join(folder, name);
    await writeFile(
      script,
      `const server = require('node:net').createServer();
       server.listen(0, '127.0.0.1', () => console.log(server.address().port));`,
    );
    const child = spawn(process.execPath, [script, 'queue', 'serve']);
    try {
      const [line] = (await once(child.stdout, 'data')) as [Buffer];
      const port = Number(line.toString());
      const part = (name: Part['name']): Part => ({
        name,
        title: 'mill',
        addresses: [{ listener: 'http', port, url: '' }],
        listeners: [],
      });
      const [own, other] = await examine(portChecks([part('queue'), part('db')], signal));
      expect(own).toEqual({
        name: `port ${port}`,
        status: 'ok',
        finding: `in use by Millrace, pid ${child.pid} (mill, http)`,
      });
      expect(other).toMatchObject({ status: 'warn', advice: expect.stringContaining('Stop it') });
    } finally {
      child.kill();
    }
  });
});

test('a check that itself breaks is reported as a failure', async () => {
  const broken = { name: 'moon', run: () => Promise.reject(new Error('no telescope')) };
  expect(await examine([broken])).toEqual([
    {
      name: 'moon',
      status: 'fail',
      finding: 'check failed: no telescope',
      advice: 'Report this as a bug in ctl.',
    },
  ]);
});
