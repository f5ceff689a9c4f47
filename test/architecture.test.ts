import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sourceFiles } from '../scripts/language.mjs';
import { read, root } from './support/markdown.js';

/* What ARCHITECTURE.md and CONTRIBUTING.md say of the sources, held against them. */

const sources = sourceFiles(['packages']).filter(
  (file) => file.includes('/src/') && !/\.test(?:-support)?\.tsx?$/.test(file),
);

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  return Array.from(text.matchAll(/from '@millrace\/([a-z]+)|import\('@millrace\/([a-z]+)/g)).map(
    ([, name, lazy]) => name ?? lazy ?? '',
  );
}

/** The block of the page: package, then what it imports. */
function statedImports(page = read('ARCHITECTURE.md')): Map<string, string[]> {
  const lines = page.matchAll(/^([a-z]+) +imports (.+)$/gm);
  return new Map(
    Array.from(lines, ([, name = '', list = '']) => [
      name,
      list === 'nothing' ? [] : list.split(', ').toSorted(),
    ]),
  );
}

describe('ARCHITECTURE.md', () => {
  test('import directions: the page lists what each package imports', () => {
    const real = new Map<string, Set<string>>();
    for (const file of sources) {
      const own = file.split('/')[1]!;
      const found = real.get(own) ?? new Set();
      for (const name of importsOf(file)) if (name !== own) found.add(name);
      real.set(own, found);
    }
    const listed = Object.fromEntries(
      Array.from(real, ([name, found]) => [name, [...found].toSorted()]),
    );
    expect(Object.fromEntries(statedImports())).toEqual(listed);
  });

  test('import directions: a wrong statement is noticed', () => {
    expect(statedImports('kit imports contract, db\n').get('kit')).toEqual(['contract', 'db']);
  });

  test('the page stays short', () => {
    expect(Buffer.byteLength(read('ARCHITECTURE.md'))).toBeLessThan(9_000);
  });
});

describe('clock and random', () => {
  /** The system implementations, programs of their own, and code that runs in a browser. */
  const allowed =
    /^packages\/(?:kit\/src\/(?:clock|random|simulation\/rest)\.ts|client\/|worker\/|dashboard\/|daemon\/src\/fake-agent\/)/;
  // An interval that does nothing only keeps the process alive; it decides nothing.
  const forbidden =
    /\bDate\.now\(|\bMath\.random\(|(?<!\.)\bset(?:Timeout|Interval)\((?!\(\) => undefined)|new Date\(\)/;

  test('are injected everywhere else', () => {
    const uses = sources
      .filter((file) => !allowed.test(file))
      .flatMap((file) => {
        const lines = readFileSync(join(root, file), 'utf8').split('\n');
        return lines.flatMap((line, at) =>
          forbidden.test(line) && !/^\s*(?:\*|\/\/)/.test(line) ? [`${file}:${at + 1}`] : [],
        );
      });
    expect(uses).toEqual([]);
  });
});
