import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const pictures = join(root, 'docs', 'screenshots');
const maxBytes = 1_500_000;

/** The Markdown files below docs, and the README. */
const pages = [
  join(root, 'README.md'),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(root, 'docs', name)),
];

/** The files that a page shows as pictures. */
function shownBy(page: string): string[] {
  const matches = readFileSync(page, 'utf8').matchAll(/!\[[^\]]+\]\(([^)\s]+)\)/g);
  return [...matches]
    .map(([, target]) => target!)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => resolve(dirname(page), target));
}

/** Every picture, those in folders included. */
const existing = readdirSync(pictures, { recursive: true, encoding: 'utf8' })
  .map((name) => join(pictures, name))
  .filter((file) => statSync(file).isFile());

test('pictures: every one that a page shows exists, and none is unused', () => {
  const shown = new Set(pages.flatMap(shownBy).filter((file) => file.startsWith(pictures)));
  expect(existing.length).toBeGreaterThan(0);
  expect([...shown].toSorted()).toEqual(existing.toSorted());
});

test('pictures: are PNG or WebP files, together at most 1.5 MB', () => {
  const signatures = { png: '\x89PNG', webp: 'RIFF' };
  for (const file of existing) {
    const signature = signatures[file.split('.').at(-1) as keyof typeof signatures];
    expect(readFileSync(file).toString('latin1', 0, 4), file).toBe(signature);
  }
  const size = existing.reduce((sum, file) => sum + statSync(file).size, 0);
  expect(size).toBeLessThan(maxBytes);
});
