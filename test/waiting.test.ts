import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFiles } from '../scripts/campaign-tests.mjs';
import { root } from './support/markdown.js';

/* A busy machine must not fail a test. Without a limit `vi.waitFor` gives up after a second. */

const onOneLine = /vi\.wait(?:For|Until)\((?:async )?\(\) => .*\)\);$/gm;
const onSeveral = /^( *)\S.*vi\.wait(?:For|Until)\((?:async )?\(\) => \{\n[^]*?\n\1\}.*$/gm;

function impatient(text: string): string[] {
  const found = [...text.matchAll(onOneLine), ...text.matchAll(onSeveral)].map(([wait]) => wait);
  return found.filter((wait) => /\)\);$|\n *\}\);$/.test(wait));
}

test('what waits says how long, or polls for as long as vitest.config.ts says', () => {
  const files = testFiles().filter((file) => !file.endsWith('waiting.test.ts'));
  expect(files.length).toBeGreaterThan(400);
  const found = files.map((file) => [file, impatient(readFileSync(join(root, file), 'utf8'))]);
  expect(found.filter(([, waits]) => waits!.length > 0)).toEqual([]);
});

test('a wait without a limit is found', () => {
  const short = 'await vi.waitFor(() => expect(count).toBe(1));';
  const long = 'await vi.waitFor(async () => {\n  expect(count).toBe(1);\n});';
  expect(impatient(`${short}\n`)).toHaveLength(1);
  expect(impatient(`${long}\n`)).toEqual([long]);
  expect(
    impatient(`${short.replace(');', ', soon);')}\n${long.replace('})', '}, soon)')}\n`),
  ).toEqual([]);
});
