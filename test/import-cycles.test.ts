import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';

const script = fileURLToPath(new URL('../scripts/import-cycles.mjs', import.meta.url));
const directories: string[] = [];

interface Outcome {
  status: number | null;
  output: string;
}

afterEach(() => {
  for (const made of directories.splice(0)) rmSync(made, { recursive: true, force: true });
});

/** Runs the check on a tree with these files. */
function check(files: Readonly<Record<string, string>>): Outcome {
  const root = mkdtempSync(join(tmpdir(), 'millrace-cycles-'));
  directories.push(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, root], {
    encoding: 'utf8',
  });
  return { status, output: stdout + stderr };
}

test('import cycles: a tree without one passes, and the counts are printed', () => {
  const { status, output } = check({
    'packages/a/src/x.ts': `import { y } from './y.js';\nimport 'node:fs';\nexport const x = y;\n`,
    'packages/a/src/y.ts': 'export const y = 1;\n',
  });
  expect(output).toBe(
    '2 files, 0 import cycles, 0 folder cycles (0 folders), 0 imports against the layers\n',
  );
  expect(status).toBe(0);
});

const closing = [
  ['a value import', `import { x } from './x.js';\nexport const y = () => x;\n`],
  ['a type import', `import type { X } from './x.js';\nexport type Y = X;\n`],
  ['an inline type import', `import { type X } from './x.js';\nexport type Y = X;\n`],
  ['an import type expression', `export type Y = import('./x.js').X;\n`],
  ['a typeof import', `export type Y = typeof import('./x.js');\n`],
  ['a lazy import', `export const y = () => import('./x.js');\n`],
  ['an export from', `export { x } from './x.js';\n`],
  ['an export of types', `export type { X } from './x.js';\n`],
  ['an export of everything', `export * from './x.js';\n`],
] as const;

describe('import cycles: each closes one:', () => {
  // One tree with a package for each.
  const outcome = check(
    Object.fromEntries(
      closing.flatMap(([, text], n) => [
        [`packages/a${n}/src/x.tsx`, `import './y.js';\nexport const x = 1;\nexport type X = 1;\n`],
        [`packages/a${n}/src/y.ts`, text],
      ]),
    ),
  );

  test('as many are counted', () => {
    expect(outcome.output).toContain(`${closing.length} import cycles`);
    expect(outcome.status).toBe(1);
  });

  test.each(closing.map(([name], n) => [name, n] as const))('%s', (_, n) => {
    const [x, y] = [`packages/a${n}/src/x.tsx`, `packages/a${n}/src/y.ts`];
    expect(outcome.output).toContain(`import cycle of 2 files: ${x} -> ${y} -> ${x}\n`);
  });
});

test('import cycles: a cycle through the name of a package is found', () => {
  const manifest = (name: string) =>
    JSON.stringify({ name, exports: { './part': { 'millrace-source': './src/part.ts' } } });
  const { status, output } = check({
    'packages/a/package.json': manifest('@millrace/a'),
    'packages/a/src/part.ts': `import '@millrace/b/part';\n`,
    'packages/b/package.json': manifest('@millrace/b'),
    'packages/b/src/part.ts': `import '@millrace/a/part';\n`,
  });
  expect(output).toContain('import cycle of 2 files');
  expect(status).toBe(1);
});

test('folder cycles: two folders that import each other are found, at any depth', () => {
  const { status, output } = check({
    'packages/a/src/in/one/x.ts': `import type { Y } from '../two/y.js';\nexport type X = Y;\n`,
    'packages/a/src/in/two/y.ts': 'export type Y = 1;\n',
    'packages/a/src/in/two/z.ts': `import type { W } from '../one/w.js';\nexport type Z = W;\n`,
    'packages/a/src/in/one/w.ts': 'export type W = 1;\n',
  });
  expect(output).toContain(
    'import cycle of folders: packages/a/src/in/one, packages/a/src/in/two\n',
  );
  expect(output).toContain('import cycle of folders in packages/a/src/in: one, two');
  expect(output).toContain('0 import cycles, 1 folder cycles');
  expect(status).toBe(1);
});

test('folder cycles: the files directly in a folder are a node', () => {
  const { status, output } = check({
    'packages/a/src/in/top.ts': `import './query/y.js';\n`,
    'packages/a/src/in/base.ts': 'export type Base = 1;\n',
    'packages/a/src/in/query/y.ts': `import type { Base } from '../base.js';\nexport type Y = Base;\n`,
  });
  expect(output).toContain('import cycle of folders: packages/a/src/in, packages/a/src/in/query\n');
  expect(output).toContain('packages/a/src/in/top.ts imports packages/a/src/in/query/y.ts');
  expect(output).toContain('1 folder cycles (2 folders)');
  expect(status).toBe(1);
});

const against = [
  ['packages/queue/src/core/x.ts', '../storage/y.js'],
  ['packages/queue/src/operations/x.ts', '../server/y.js'],
  ['packages/queue/src/storage/embedded/x.ts', '../postgres/y.js'],
  ['packages/queue/src/storage/postgres/x.ts', '../embedded/y.js'],
  ['packages/queue/src/storage/transfer/x.ts', '../postgres/y.js'],
  ['packages/daemon/src/notify/x.ts', '../server/y.js'],
  ['packages/daemon/src/proxy/x.ts', '../server/y.js'],
  ['packages/daemon/src/mcp/x.ts', '../operations/y.js'],
  ['packages/daemon/src/transcripts/x.ts', '../spend/y.js'],
  ['packages/daemon/src/spend/x.ts', '../insights/y.js'],
  ['packages/engine/src/value/x.ts', '../api/y.js'],
] as const;

describe('layers:', () => {
  // Of several imports between two folders one is named, so each pair is here once.
  const planted = against.map(([path, imported], n) => {
    const target = join(dirname(path), imported).replace('y.js', `y${n}.ts`);
    return {
      path: path.replace('x.ts', `x${n}.ts`),
      target,
      imported: imported.replace('y', `y${n}`),
    };
  });
  const outcome = check(
    Object.fromEntries(
      planted.flatMap(({ path, target, imported }) => [
        [path, `import type { Y } from '${imported}';\nexport type X = Y;\n`],
        [target, 'export type Y = 1;\n'],
      ]),
    ),
  );

  test('as many are counted', () => {
    expect(outcome.output).toContain(`${against.length} imports against the layers`);
    expect(outcome.status).toBe(1);
  });

  test.each(planted)('$path may not import $imported', ({ path, target }) => {
    expect(outcome.output).toContain(`${path} imports ${target}: against the layers`);
  });
});

test('layers: a folder below one is held to the same', () => {
  const { status, output } = check({
    'packages/queue/src/storage/postgres/transfer/x.ts': `import '../../embedded/y.js';\n`,
    'packages/queue/src/storage/embedded/y.ts': 'export const y = 1;\n',
  });
  expect(output).toContain(
    'packages/queue/src/storage/postgres/transfer/x.ts imports ' +
      'packages/queue/src/storage/embedded/y.ts: against the layers',
  );
  expect(status).toBe(1);
});

test('layers: stores import the transfer, and a file beside them imports both', () => {
  const { status } = check({
    'packages/queue/src/storage/postgres/x.ts': `import '../transfer/y.js';\n`,
    'packages/queue/src/storage/embedded/x.ts': `import '../transfer/y.js';\n`,
    'packages/queue/src/storage/transfer/y.ts': 'export const y = 1;\n',
    'packages/queue/src/storage/z.ts': `import './embedded/x.js';\nimport './postgres/x.js';\n`,
  });
  expect(status).toBe(0);
});

test('layers: a new folder of a layered package must be given a layer', () => {
  const { status, output } = check({ 'packages/queue/src/extra/x.ts': 'export const x = 1;\n' });
  expect(output).toContain('packages/queue/src/extra has no layer');
  expect(status).toBe(1);
});

test('an import of a file that does not exist, or no source at all, fails the check', () => {
  const missing = check({ 'packages/a/src/x.ts': `import './gone.js';\n` });
  expect(missing.output).toContain('packages/a/src/x.ts imports ./gone.js: no such file');
  expect(missing.status).toBe(1);
  expect(check({ 'packages/a/README.md': '' }).status).toBe(1);
});

test('tests may import across folders', () => {
  const { status } = check({
    'packages/queue/src/core/x.test.ts': `import '../storage/y.js';\n`,
    'packages/queue/src/storage/y.ts': `import '../core/z.js';\n`,
    'packages/queue/src/core/z.ts': 'export const z = 1;\n',
  });
  expect(status).toBe(0);
});
