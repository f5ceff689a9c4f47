import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { arch, platform, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

const run = promisify(execFile);
const prepare = join(dirname(fileURLToPath(import.meta.url)), '..', 'scripts', 'prepare.mjs');
let folder = '';

const wanted = {
  '': { version: '1.0.0' },
  'packages/mill': { version: '1.0.0' },
  'node_modules/wheel': { version: '2.0.0' },
  'node_modules/wheel-here': { version: '2.0.0', optional: true, os: [platform()], cpu: [arch()] },
  'node_modules/wheel-elsewhere': { version: '2.0.0', optional: true, os: ['moon'], cpu: ['1'] },
};
const { 'node_modules/wheel': wheel, 'node_modules/wheel-here': here } = wanted;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'prepare-'));
  for (const name of ['scripts', 'bin', 'node_modules']) await mkdir(join(folder, name));
  await copyFile(prepare, join(folder, 'scripts', 'prepare.mjs'));
  await writeFile(
    join(folder, 'install.mjs'),
    "import { install } from './scripts/prepare.mjs'; install();",
  );
  const npm = join(folder, 'bin', 'npm');
  await writeFile(npm, '#!/bin/sh\necho "npm $1"\n');
  await chmod(npm, 0o755);
  await writeFile(join(folder, 'package-lock.json'), JSON.stringify({ packages: wanted }));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What is installed where npm has noted these packages. */
async function installOver(packages: object): Promise<string> {
  await rm(join(folder, 'node_modules', '.millrace-installed'), { force: true });
  const note = join(folder, 'node_modules', '.package-lock.json');
  await writeFile(note, JSON.stringify({ packages }));
  return install();
}

async function install(): Promise<string> {
  const PATH = [join(folder, 'bin'), process.env['PATH']].join(delimiter);
  const { stdout } = await run(process.execPath, [join(folder, 'install.mjs')], { env: { PATH } });
  return stdout;
}

test('what was installed by hand is not installed once more', async () => {
  const there = { 'node_modules/wheel': wheel, 'node_modules/wheel-here': here };
  expect(await installOver(there)).toBe('');
  expect(await readFile(join(folder, 'node_modules', '.millrace-installed'), 'utf8')).toContain(
    `${platform()}-${arch()}`,
  );
});

test.for([
  ['nothing', {}],
  [
    'another version',
    { 'node_modules/wheel': { version: '1.0.0' }, 'node_modules/wheel-here': here },
  ],
  ['what belongs to another machine', { 'node_modules/wheel': wheel }],
] as const)('where %s is there it installs, once', async ([, there]) => {
  expect(await installOver(there)).toBe('npm ci\n');
  expect(await install()).toBe('');
});
