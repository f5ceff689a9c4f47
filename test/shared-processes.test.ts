import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { alone } from '../vitest.config.js';
import { root } from './support/markdown.js';

/* Many test files run in one process, one after the other, and a module is loaded once for all. */

const isTest = (file: string) => file.endsWith('.test.ts');

/** What only the first file would get, or what the next file would still have. */
function coupling(file: string, text: string): string[] {
  const hook = /^(before|after)(All|Each)\(/m.exec(text)?.[0];
  const mock = /^vi\.(mock|doMock)\(/m.exec(text)?.[0];
  return [!isTest(file) && hook, !isAlone(file) && mock].filter(
    (found) => typeof found === 'string',
  );
}

function isAlone(file: string): boolean {
  return alone.some((pattern) => file.startsWith(pattern.replace('**/*.test.ts', '')));
}

test('no file of the tests is coupled to the one before it', () => {
  const listing = ['ls-files', '--cached', '--others', '--exclude-standard', 'packages', 'test'];
  const files = execFileSync('git', listing, { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter((file) => /\/test\/|^test\/|\.test(-support)?\.ts$/.test(file) && file.endsWith('.ts'))
    .filter((file) => existsSync(join(root, file)));
  expect(files.filter(isTest).length).toBeGreaterThan(400);
  const found = files.map((file) => [file, coupling(file, readFileSync(join(root, file), 'utf8'))]);
  expect(found.filter(([, what]) => what!.length > 0)).toEqual([]);
});

test('what couples files is found', () => {
  const hook = 'const made = [];\nafterEach(() => made.splice(0));\n';
  const mock = "vi.mock('./a.js');\n";
  expect(coupling('packages/kit/test/support/a.ts', hook)).toEqual(['afterEach(']);
  expect(coupling('packages/kit/test/a.test.ts', hook)).toEqual([]);
  expect(coupling('packages/kit/test/a.test.ts', mock)).toEqual(['vi.mock(']);
  expect(coupling('packages/queue/test/postgres/contract.campaign.test.ts', mock)).toEqual([]);
});
