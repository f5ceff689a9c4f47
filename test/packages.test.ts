import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

/*
 * Each package as `npm pack` makes it, unpacked where nothing of the repository is in reach: its
 * own files alone, and of other packages those alone that it names as dependencies.
 */

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const names = readdirSync(join(root, 'packages'));
const children: ChildProcess[] = [];
let home: string;

interface Manifest {
  dependencies?: Record<string, string>;
}

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'millrace-packages-'));
  const tarballs = join(home, 'tarballs');
  mkdirSync(tarballs);
  execFileSync('npm', ['pack', '--silent', '--workspaces', '--pack-destination', tarballs], {
    cwd: root,
  });
  for (const name of names) unpack(name, tarballs);
  for (const name of names) linkDependencies(name);
  writeFileSync(join(home, 'package.json'), '{ "type": "module" }\n');
});
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(home, { recursive: true, force: true });
});

function placeOf(name: string): string {
  return join(home, 'node_modules', '@millrace', name);
}

function unpack(name: string, tarballs: string): void {
  const file = readdirSync(tarballs).find((one) => one.startsWith(`millrace-${name}-`));
  if (!file) throw new Error(`npm pack made nothing of packages/${name}`);
  mkdirSync(placeOf(name), { recursive: true });
  const args = ['-xzf', join(tarballs, file), '-C', placeOf(name), '--strip-components=1'];
  execFileSync('tar', args);
}

function linkDependencies(name: string): void {
  const manifest = JSON.parse(
    readFileSync(join(placeOf(name), 'package.json'), 'utf8'),
  ) as Manifest;
  for (const dependency of Object.keys(manifest.dependencies ?? {})) {
    if (dependency.startsWith('@millrace/')) continue;
    const place = join(placeOf(name), 'node_modules', dependency);
    const own = join(root, 'packages', name, 'node_modules', dependency);
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

const ctl = () => join(placeOf('ctl'), 'bin', 'ctl.js');

test('no package carries sources or tests', () => {
  const unexpected = names.flatMap((name) => {
    const files = readdirSync(placeOf(name), { recursive: true, encoding: 'utf8' });
    return files.filter(
      (file) => !file.includes('node_modules') && /\.test(-support)?\./.test(file),
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
    import { createDaemonClient, createQueueClient } from '@millrace/client';
    const queue = createQueueClient({ url: 'http://127.0.0.1:1' });
    console.log(typeof queue.submit, typeof createDaemonClient);
  `;
  writeFileSync(join(home, 'clients.js'), program);
  expect(run(['clients.js'])).toBe('function function\n');
});

test('the command line runs', () => {
  expect(run([ctl(), '--version'])).toMatch(/^\d+\.\d+\.\d+/);
  expect(run([ctl(), 'help', 'queue'])).toContain('ctl queue');
});

test.each([
  ['db', ['--grpc', '127.0.0.1:0', '--http', '127.0.0.1:0'], '/readyz'],
  ['daemon', ['--listen', '127.0.0.1:0'], '/healthz'],
  ['daemon', ['--listen', '127.0.0.1:0'], '/'],
])('ctl %s serve serves %s at %s', async (part, flags, path) => {
  const data = mkdtempSync(join(home, 'data-'));
  const child = spawn(process.execPath, [ctl(), part, 'serve', ...flags, '--data', data], {
    cwd: home,
    env: { ...process.env, NODE_OPTIONS: '', HOME: data },
  });
  children.push(child);
  let [out, errors] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString()));
  const url = () => /"listener":"http","url":"([^"]+)"/.exec(out)?.[1];
  await expect.poll(url, { timeout: 60_000, message: errors }).toBeDefined();
  const answer = await fetch(`${url()}${path}`);
  expect(answer.status).toBe(200);
  const ended = new Promise((resolve) => child.on('close', resolve));
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});
