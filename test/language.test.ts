import { spawnSync } from 'node:child_process';
import { beforeAll, describe, expect, test } from 'vitest';
import type { CommandShape } from '../packages/ctl/src/base/shape.js';
import { ctl } from '../packages/ctl/test/run-ctl.js';
import { violations, violationsIn } from '../scripts/language.mjs';
import { markdownFiles, read } from './support/markdown.js';

/* Plain engineering English, as far as a machine can hold it. CONTRIBUTING.md has the rules. */

/** Has the words below as samples. */
const samples = 'test/language.test.ts';

test('sources use no private words', () => {
  expect(violations().filter(({ file }) => file !== samples)).toEqual([]);
});

test('a private word is noticed in names, strings and comments', () => {
  const source = [
    'const mostBytes = 1;',
    '/** Waits until it is told of a change. */',
    'export const help = "mend it and go on with --start-line 1";',
    'export const kept_tokens = `so many ${mostBytes}`;',
  ].join('\n');
  const found = violationsIn('a.ts', source).map(({ kind, text }) => `${kind} ${text}`);
  expect(found.toSorted()).toEqual([
    'comment is told',
    'identifier mostBytes',
    'identifier mostBytes',
    'string go on with',
    'string mend',
    'string so many',
  ]);
});

describe('help', () => {
  let commands: { path: string; summary: string }[];
  beforeAll(async () => {
    const tree = JSON.parse((await ctl(['help', '--json'])).out) as CommandShape;
    commands = flatten(tree, '');
  });

  test('summaries begin with a capital verb and have no final full stop', () => {
    const bad = commands.filter(({ summary }) => !/^[A-Z][a-z]+ .*[^.]$/s.test(summary));
    expect(bad).toEqual([]);
  });
});

function flatten(shape: CommandShape, above: string): { path: string; summary: string }[] {
  const path = `${above} ${shape.name}`.trim();
  const own = above === '' ? [] : [{ path, summary: shape.summary }];
  return [...own, ...(shape.commands ?? []).flatMap((inner) => flatten(inner, path))];
}

describe('docs', () => {
  const pages = markdownFiles().filter(
    (file) =>
      (file.startsWith('docs/') && !/^docs\/(?:reference|decisions)\//.test(file)) ||
      file === 'README.md',
  );

  test.each(pages)('%s: at most about 800 words', (file) => {
    const most = file.startsWith('docs/how-to/') ? 800 : 900;
    expect(read(file).trim().split(/\s+/).length).toBeLessThanOrEqual(most);
  });

  test('README.md has at most 120 lines', () => {
    expect(read('README.md').split('\n').length).toBeLessThanOrEqual(121);
  });
});

test('the finder runs as a program', () => {
  const { status, stdout } = spawnSync('node', ['scripts/language.mjs', 'packages/contract'], {
    encoding: 'utf8',
  });
  expect(stdout).toMatch(/findings$/m);
  expect(status).toBe(/^0 findings/m.test(stdout) ? 0 : 1);
});
