import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const program = join(root, 'examples', 'embedded', 'main.mjs');
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-example-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(): string {
  const result = spawnSync(process.execPath, [program, join(folder, 'data')], {
    encoding: 'utf8',
    timeout: 120_000,
  });
  expect(result.stderr).toBe('');
  expect(result.status).toBe(0);
  return result.stdout;
}

test('the embedded example works, and remembers what it did', () => {
  expect(run()).toBe('Made a new list.\nDid: Bake bread\n2 left to do, 3 in all.\n');
  expect(run()).toBe(
    'Found the list of the last run.\nDid: Water the plants\n1 left to do, 3 in all.\n',
  );
});

test('the embedded example is short enough to read', () => {
  expect(readFileSync(program, 'utf8').split('\n').length).toBeLessThan(40);
});
