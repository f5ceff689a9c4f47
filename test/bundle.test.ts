import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

/*
 * A repository with one small command line in it, built by the scripts of this one: `bin/ctl` runs
 * the bundle as long as that is what the packages are, and the packages from then on.
 */

const root = dirname(dirname(fileURLToPath(import.meta.url)));
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-bundle-'));
  mkdirSync(join(folder, 'scripts'));
  for (const file of ['bin/ctl', 'scripts/built-ctl.mjs', 'scripts/bundle.mjs']) {
    cpSync(join(root, file), join(folder, file), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  mkdirSync(join(folder, 'packages', 'ctl', 'dist'), { recursive: true });
  write('package.json', '{"type":"module"}');
  write('package-lock.json', '{}');
  write('packages/ctl/package.json', '{"type":"module"}');
  write('packages/ctl/word.txt', 'a file of the package');
  write('packages/ctl/dist/late.js', "export const late = 'loaded late';");
  compile('first');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(file: string, text: string): void {
  writeFileSync(join(folder, file), text);
}

/** As `tsc --build` leaves a package: its modules, and a note of its own. */
function compile(word: string): void {
  write(
    'packages/ctl/dist/main.js',
    `import { readFileSync } from 'node:fs';
export async function main([ask]) {
  if (ask === 'fail') throw new Error('it failed');
  const { late } = await import('./late.js');
  const beside = readFileSync(new URL('../word.txt', import.meta.url), 'utf8');
  console.log(['${word}', late, beside].join(', '));
}
`,
  );
  appendFileSync(join(folder, 'packages', 'ctl', 'tsconfig.tsbuildinfo'), word);
}

function node(args: readonly string[], variables: Record<string, string> = {}): string {
  const env = { PATH: process.env['PATH'], ...variables };
  return execFileSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    env,
    stdio: 'pipe',
  });
}

const bundle = () => node(['scripts/bundle.mjs']);
const ctl = (...args: string[]) => node(['bin/ctl', ...args]).trim();
const bundles = () =>
  readdirSync(join(folder, 'dist', 'ctl'), { withFileTypes: true }).filter((one) =>
    one.isDirectory(),
  );

test('without a bundle the packages run, and with one the bundle does', () => {
  expect(ctl()).toBe('first, loaded late, a file of the package');
  bundle();
  rmSync(join(folder, 'packages', 'ctl', 'dist'), { recursive: true });
  expect(ctl()).toBe('first, loaded late, a file of the package');
});

test('what was compiled since runs in place of the bundle, until there is a new one', () => {
  bundle();
  compile('second');
  expect(ctl()).toBe('second, loaded late, a file of the package');
  bundle();
  rmSync(join(folder, 'packages', 'ctl', 'dist'), { recursive: true });
  expect(ctl()).toBe('second, loaded late, a file of the package');
});

test('another set of libraries and another way to bundle count as well', () => {
  for (const file of ['package-lock.json', 'scripts/bundle.mjs']) {
    bundle();
    write('packages/ctl/dist/late.js', `export const late = '${file} changed';`);
    expect(ctl()).not.toContain(`${file} changed`);
    appendFileSync(join(folder, file), '\n');
    expect(ctl()).toContain(`${file} changed`);
  }
});

test('a bundle that a server may be running from is left there, but not forever', () => {
  bundle();
  bundle();
  expect(bundles()).toHaveLength(1);
  for (const word of ['second', 'third', 'fourth', 'fifth']) {
    compile(word);
    bundle();
  }
  expect(bundles()).toHaveLength(3);
  expect(ctl()).toContain('fifth');
});

test('MILLRACE_DEBUG shows the line of the module that failed', () => {
  bundle();
  const fail = (variables = {}) => {
    try {
      return node(['bin/ctl', 'fail'], variables);
    } catch (error) {
      return (error as { stderr: string }).stderr;
    }
  };
  expect(fail()).toMatch(/at .*main.*dist\/ctl\/\w+\/main\.js:/);
  expect(fail({ MILLRACE_DEBUG: '1' })).toMatch(/at .*main.*packages\/ctl\/dist\/main\.js:3:/);
});
