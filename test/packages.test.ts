import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from './support/markdown.js';
import { manifestIn, packAll, publishedPackages } from './support/packed.js';

/*
 * Each published package as `npm pack` makes it, unpacked where nothing of the repository is in
 * reach: its own files alone, and of other packages those alone that it names as dependencies.
 */

const published = publishedPackages();
const names = [...published.keys()];
const children: ChildProcess[] = [];
/** A release builds and packs everything, and npm asks its registry. */
const patienceMs = 600_000;
let home: string;
let tarballs: Map<string, string>;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'millrace-packages-'));
  const folder = join(home, 'tarballs');
  mkdirSync(folder);
  tarballs = packAll(folder);
  for (const name of names) unpack(name);
  for (const name of names) linkDependencies(name);
  writeFileSync(join(home, 'package.json'), '{ "type": "module" }\n');
}, patienceMs);
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(home, { recursive: true, force: true });
});

function placeOf(name: string): string {
  return join(home, 'node_modules', name);
}

function unpack(name: string): void {
  const file = tarballs.get(name);
  if (!file) throw new Error(`npm pack made nothing of ${name}`);
  mkdirSync(placeOf(name), { recursive: true });
  execFileSync('tar', ['-xzf', file, '-C', placeOf(name), '--strip-components=1']);
}

function linkDependencies(name: string): void {
  const { dependencies, optionalDependencies } = manifestIn(placeOf(name));
  for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies })) {
    if (dependency.startsWith('@millrace/')) continue;
    const place = join(placeOf(name), 'node_modules', dependency);
    const own = join(published.get(name)!, 'node_modules', dependency);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(existsSync(own) ? own : join(root, 'node_modules', dependency), place);
  }
}

function run(args: readonly string[]): string {
  return execFileSync(process.execPath, args, {
    cwd: home,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '', MILLRACE_DATA_DIR: join(home, 'data') },
  });
}

const ctl = () => join(placeOf('millrace'), 'bin', 'millrace.js');

test('the published packages are the command and the libraries with what they import', () => {
  const wanted = ['client', 'contract', 'db', 'engine', 'kit', 'queue', 'wire', 'worker'];
  expect(names).toEqual(
    expect.arrayContaining(['millrace', ...wanted.map((n) => `@millrace/${n}`)]),
  );
  const inside = names.flatMap((name) =>
    Object.keys(manifestIn(published.get(name)!).dependencies ?? {}).filter((one) =>
      one.startsWith('@millrace/'),
    ),
  );
  expect(inside.filter((name) => !published.has(name))).toEqual([]);
});

test.each(names)('%s has what a registry shows', (name) => {
  const manifest = JSON.parse(readFileSync(join(placeOf(name), 'package.json'), 'utf8'));
  expect(manifest).toMatchObject({
    license: 'Apache-2.0',
    engines: { node: '>=20.19.0' },
    publishConfig: { access: 'public' },
    description: expect.stringMatching(/.{20,}/),
  });
  for (const file of ['README.md', 'LICENSE']) {
    expect(existsSync(join(placeOf(name), file)), `${name} has no ${file}`).toBe(true);
  }
  for (const entry of Object.values<any>(manifest.exports ?? {})) {
    for (const target of [entry.types, entry.default]) {
      expect(filesOf(placeOf(name), target), target).not.toEqual([]);
    }
  }
});

/** The files that an entry of the exports stands for: `*` is any path. */
function filesOf(folder: string, target: string): string[] {
  const [start = '', end] = target.split('*');
  if (end === undefined) return existsSync(join(folder, target)) ? [target] : [];
  const files = readdirSync(join(folder, start), { recursive: true, encoding: 'utf8' });
  return files.filter((file) => file.endsWith(end));
}

test('release: a dry run leaves checksums that hold and an SBOM of what is installed', () => {
  const folder = join(home, 'tarballs');
  const out = execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], {
    cwd: folder,
    encoding: 'utf8',
  });
  const files = out.trim().split('\n');
  // A wheel and an sdist, or one archive of the sources, and that of Go.
  const sdks = files.filter((line) => /\.whl|\.tar\.gz/.test(line));
  expect(sdks.length).toBe(sdks.some((line) => line.includes('.whl')) ? 3 : 2);
  expect(sdks.join()).toMatch(/millrace-go-.*\.tar\.gz/);
  expect(files).toHaveLength(names.length + 1 + sdks.length);
  const { version } = manifestIn(placeOf('millrace'));
  const sbom = JSON.parse(readFileSync(join(folder, `millrace-${version}.cdx.json`), 'utf8'));
  const components = sbom.components.map(({ name }: { name: string }) => name);
  expect(components).toEqual(expect.arrayContaining(['lmdb', 'pg', 'zod', 'commander', 'react']));
  expect(components).not.toContain('vitest');
  expect(sbom.metadata.component).toMatchObject({ name: 'millrace', version });
});

test('no package carries sources or tests', () => {
  const unexpected = names.flatMap((name) => {
    const files = readdirSync(placeOf(name), { recursive: true, encoding: 'utf8' });
    return files.filter(
      (file) => !file.includes('node_modules') && /\.test(-support)?\.(?!yaml$)/.test(file),
    );
  });
  expect(unexpected).toEqual([]);
});

test('the database works in one import', () => {
  const program = `
    import { open } from '@millrace/db';
    const db = await open('./mill');
    const parts = db.collection('parts');
    await parts.insert({ name: 'wheel' });
    console.log(await parts.count());
    await db.close();
  `;
  writeFileSync(join(home, 'one-import.js'), program);
  expect(run(['one-import.js'])).toBe('1\n');
});

test('the clients can be imported', () => {
  const program = `
    import { createDaemonClient, createQueueApi } from '@millrace/client';
    const queue = createQueueApi({ url: 'http://127.0.0.1:1' });
    console.log(typeof queue.submit, typeof createDaemonClient);
  `;
  writeFileSync(join(home, 'clients.js'), program);
  expect(run(['clients.js'])).toBe('function function\n');
});

test('millrace installs the binaries of the lmdb that it was built with', () => {
  const { optionalDependencies } = manifestIn(placeOf('millrace'));
  const lmdb = manifestIn(join(root, 'node_modules', 'lmdb'));
  expect(optionalDependencies).toEqual(lmdb.optionalDependencies);
});

test('the command line runs', () => {
  expect(run([ctl(), '--version'])).toMatch(/^\d+\.\d+\.\d+/);
  expect(run([ctl(), 'help', 'queue'])).toContain('Usage: millrace queue');
});

describe.each([
  {
    part: 'db',
    listeners: ['--grpc', '127.0.0.1:0', '--http', '127.0.0.1:0'],
    paths: ['/readyz', '/openapi.yaml'],
  },
  {
    part: 'daemon',
    listeners: ['--listen', '127.0.0.1:0'],
    paths: ['/healthz', '/', '/api/docs/assets/swagger-ui.css'],
  },
])('ctl $part serve', { tags: 'campaign-process' }, ({ part, listeners, paths }) => {
  let child: ChildProcess;
  let ended: Promise<unknown>;
  let out = '';

  beforeAll(() => {
    const data = mkdtempSync(join(home, 'data-'));
    const args = [ctl(), part, 'serve', ...listeners, '--data', data];
    const env = { ...process.env, NODE_OPTIONS: '', HOME: data };
    child = spawn(process.execPath, args, { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    ended = new Promise((resolve) => child.on('close', resolve));
    for (const stream of [child.stdout, child.stderr]) {
      stream!.on('data', (bytes: Buffer) => (out += bytes.toString()));
    }
  });

  test.each(paths)('serves %s', async (path) => {
    const url = () => /"listener":"http","url":"([^"]+)"/.exec(out)?.[1];
    await expect.poll(() => url() ?? out, { timeout: 60_000 }).toMatch(/^http:/);
    const answer = await fetch(`${url()}${path}`);
    expect(answer.status).toBe(200);
  });

  test('ends on SIGTERM', async () => {
    child.kill('SIGTERM');
    expect(await ended, out).toBe(0);
  });
});

describe('npm install into an empty project', { tags: 'campaign-process' }, () => {
  const maxMegabytes = 60;
  let project: string;
  let output: string;
  const groups: ChildProcess[] = [];

  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), 'millrace-install-'));
    // Command 1 of 5.
    output = command('npm', ['install', '--no-audit', '--no-fund', tarballs.get('millrace')!]);
  }, patienceMs);
  afterAll(async () => {
    // The whole group: npx does not pass every signal on to what it runs.
    await Promise.all(
      groups.map((child) => {
        const ended = new Promise((resolve) => child.on('close', resolve));
        process.kill(-child.pid!, 'SIGTERM');
        return ended;
      }),
    );
    rmSync(project, { recursive: true, force: true });
  });

  function environment(): NodeJS.ProcessEnv {
    // npm may need the proxy of this machine and its certificates, which a Node from npm does not
    // know: it would retry for minutes. Settings of the running test are left out.
    const inherited = Object.entries(process.env).filter(
      ([name]) => name === 'NODE_EXTRA_CA_CERTS' || !/^(?:npm_|MILLRACE_|VITEST|NODE_)/i.test(name),
    );
    const path = `${dirname(process.execPath)}:${process.env['PATH']}`;
    const data = join(project, 'data');
    return { ...Object.fromEntries(inherited), PATH: path, MILLRACE_DATA_DIR: data };
  }

  function command(program: string, args: readonly string[]): string {
    const quoted = [program, ...args].map((word) => `'${word}'`).join(' ');
    const options = { cwd: project, encoding: 'utf8', env: environment() } as const;
    return execFileSync('sh', ['-c', `${quoted} 2>&1`], options);
  }

  /** Starts a command that keeps running, and resolves when it has printed a match. */
  async function start(words: readonly string[], sign: RegExp): Promise<RegExpExecArray> {
    const [program = '', ...args] = words;
    const child = spawn(program, args, { cwd: project, env: environment(), detached: true });
    groups.push(child);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (bytes: Buffer) => (text += bytes.toString()));
    }
    await expect.poll(() => sign.test(text) || text, { timeout: 120_000 }).toBe(true);
    return sign.exec(text)!;
  }

  test('npm reports nothing that is ours', () => {
    // npm's own notice about the settings of this machine.
    const isForeign = (line: string) => line.startsWith('npm warn Unknown');
    const lines = output.split('\n').filter((line) => line.startsWith('npm'));
    expect(lines.filter((line) => !isForeign(line))).toEqual([]);
  });

  test(`the installation is at most ${maxMegabytes} MB, without a compiled module`, () => {
    const modules = join(project, 'node_modules');
    const files = readdirSync(modules, { recursive: true, encoding: 'utf8' });
    const sizes = files.map((file) => statSync(join(modules, file))).filter((one) => one.isFile());
    const megabytes = sizes.reduce((sum, { size }) => sum + size, 0) / 1e6;
    expect(megabytes).toBeGreaterThan(5);
    expect(megabytes).toBeLessThan(maxMegabytes);
    expect(files.filter((file) => /build[/\\]Release|binding\.gyp/.test(file))).toEqual([]);
  });

  test('five commands lead from an empty directory to a task that has run', async () => {
    writeFileSync(
      join(project, 'handler.mjs'),
      `import { createServer } from 'node:http';
      const server = createServer((request, response) => {
        request.resume().on('end', () => response.writeHead(204).end());
      });
      server.listen(0, '127.0.0.1', () => console.log('port ' + server.address().port + '.'));`,
    );
    const [, port] = await start(['node', 'handler.mjs'], /port (\d+)\./);
    mkdirSync(join(project, 'data'), { mode: 0o700 });
    const allowed = `{ scheme: http, host: 127.0.0.1, port: ${port}, networks: [127.0.0.0/8] }`;
    writeFileSync(join(project, 'data', 'queue.yaml'), `callback_allowlist:\n  - ${allowed}\n`);
    writeFileSync(join(project, 'hello.yaml'), `callback: { url: 'http://127.0.0.1:${port}/' }\n`);
    const addresses = [
      'listen',
      'queue-listen',
      'queue-grpc',
      'metrics-listen',
      'db-grpc',
      'db-http',
    ];
    const flags = addresses.flatMap((name) => [`--${name}`, '127.0.0.1:0']);
    await start(['npx', 'millrace', 'up', ...flags], /Ctrl-C stops everything/);
    command('npx', ['ctl', 'queue', 'config', 'set', 'hello', 'hello.yaml']);
    const said = command('npx', ['millrace', 'queue', 'submit', 'hello', 'say', '--wait']);
    expect(said).toContain('SUCCEEDED');
    expect(command('npx', ['millrace', 'status'])).toMatch(/daemon +up/);
  });
});
