import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { read, root } from './support/markdown.js';

test('security page: every attack names a test that exists', () => {
  const [, section = ''] = read('docs/security.md').split('## Attacks and defenses');
  const entries = section.split('\n## ')[0]!.match(/^- .+$/gm) ?? [];
  expect(entries.length).toBeGreaterThanOrEqual(16);
  for (const entry of entries) {
    const tests = Array.from(entry.matchAll(/`([\w./-]+\.test\.ts)`/g), ([, path]) => path!);
    expect(tests, entry).not.toEqual([]);
    expect(tests.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  }
});
