import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { CommandShape } from '../packages/ctl/src/base/shape.js';
import { ctl } from '../packages/ctl/test/run-ctl.js';
import { faultOfCtl, wordsOf } from './support/command-tree.js';
import { exceptions } from './support/exceptions.js';
import {
  commandsOf,
  fencesOf,
  markdownFiles,
  pagesWithCommands,
  read,
  root,
} from './support/markdown.js';
import {
  isOfRepository,
  pagesOfDatabase,
  pagesOfQueue,
  pagesOfRepository,
  pagesOfServers,
} from './support/pages.js';

function withoutCode(text: string): string {
  return text.replaceAll(/^ *```[\s\S]*?^ *```/gm, '').replaceAll(/`[^`\n]*`/g, 'code');
}

/** As GitHub makes anchors of headings. */
function anchorsOf(text: string): string[] {
  const headings = text.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/^#{1,6} (.+)$/gm);
  return Array.from(headings, ([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(/\s/g, '-'),
  );
}

function brokenLinks(file: string, text = read(file)): string[] {
  const links = withoutCode(text).matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g);
  return Array.from(links, ([, target = '']) => target).filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const absolute = path === '' ? join(root, file) : resolve(root, dirname(file), path);
    if (!existsSync(absolute)) return true;
    return anchor !== undefined && !anchorsOf(readFileSync(absolute, 'utf8')).includes(anchor);
  });
}

describe.each(markdownFiles())('%s', (file) => {
  test('every relative link leads somewhere', () => {
    expect(brokenLinks(file)).toEqual([]);
  });

  test('every fence is of a language that a test looks at', () => {
    const known = new Set(['', 'text', 'sh', 'ts', 'tsx', 'js', 'yaml', 'json']);
    // Run by test/sdk-python.campaign.test.ts and compiled by test/sdk-go.campaign.test.ts.
    if (file === 'sdks/python/README.md') known.add('python');
    if (file === 'sdks/go/README.md') known.add('go');
    // The programs of peers, run by test/coming-from.campaign.test.ts.
    if (/coming-from-(?:bullmq|pg-boss)\.md$/.test(file)) known.add('mjs');
    const unknown = fencesOf(file).filter(({ language }) => !known.has(language));
    expect(unknown).toEqual([]);
  });
});

test('a broken link is noticed', () => {
  const links = '[a](no-such.md) [b](GLOSSARY.md#no-such) [c](GLOSSARY.md#database) `[d](code)`';
  expect(brokenLinks('README.md', links)).toEqual(['no-such.md', 'GLOSSARY.md#no-such']);
  expect(brokenLinks('docs/security.md', '[a](security.md) [b](LICENSE)')).toEqual(['LICENSE']);
});

describe('commands', () => {
  let tree: CommandShape;
  beforeAll(async () => {
    tree = JSON.parse((await ctl(['help', '--json'])).out);
  });

  test('every page with commands has a test that runs them', () => {
    const run = [pagesOfServers, pagesOfQueue, pagesOfDatabase, pagesOfRepository].flat();
    expect(run.toSorted()).toEqual(pagesWithCommands.toSorted());
    const others = pagesOfRepository.flatMap((file) => commandsOf(file));
    const elsewhere = new Set(pagesOfServers.flatMap((file) => commandsOf(file)));
    expect(others.filter((command) => !isOfRepository(command) && !elsewhere.has(command))).toEqual(
      [],
    );
  });

  test('every exception is to a command that a page has, and says why', () => {
    const commands = new Set(pagesWithCommands.flatMap((file) => commandsOf(file)));
    const stale = exceptions.filter(({ command }) => !commands.has(command));
    expect(stale).toEqual([]);
    expect(exceptions.filter(({ because }) => because.length < 12)).toEqual([]);
    const names = exceptions.map(({ command }) => command);
    expect(names).toEqual([...new Set(names)]);
  });

  test('what is run instead is the same program', () => {
    const programOf = (line: string) => wordsOf(line).slice(0, 2).join(' ');
    for (const { command, instead } of exceptions) {
      if (instead) expect(programOf(instead)).toBe(programOf(command));
    }
  });

  test('what writes into the sources is run by npm run check with --check', () => {
    expect(read('scripts/check.mjs')).toMatch(/'generate', '--', '--check'/);
  });

  describe.each(pagesWithCommands)('%s', (file) => {
    test('the shell can read every fence', () => {
      const texts = fencesOf(file).filter(({ language }) => language === 'sh');
      for (const { text } of texts) {
        const { status, stderr } = spawnSync('sh', ['-n'], { input: text, encoding: 'utf8' });
        expect(status, stderr).toBe(0);
      }
    });

    test('every command is there, with its flags and arguments', () => {
      const faults = commandsOf(file).map((command) => [command, faultOf(command, tree)]);
      expect(faults.filter(([, fault]) => fault !== undefined)).toEqual([]);
    });
  });

  test('every command that the dashboard names is there', () => {
    const source = join(root, 'packages', 'dashboard', 'src');
    const files = readdirSync(source, { recursive: true, encoding: 'utf8' });
    const commands = files
      .filter((file) => file.endsWith('.tsx'))
      .flatMap((file) => [
        ...readFileSync(join(source, file), 'utf8').matchAll(/<code>(ctl [^<]+)/g),
      ])
      .map(
        ([, command = '']) =>
          `bin/${command.replaceAll(/\{[^}]*\}/g, 'x').replaceAll('&quot;', '"')}`,
      );
    expect(commands.length).toBeGreaterThan(3);
    const faults = commands.map((command) => [command, faultOf(command, tree)]);
    expect(faults.filter(([, fault]) => fault !== undefined)).toEqual([]);
  });

  test('a command or flag that is not there is noticed', () => {
    const unknown = (line: string) => faultOf(line, tree);
    expect(unknown('bin/ctl queue redrive mail --filter x')).toBe('no flag --filter');
    expect(unknown('bin/ctl queue config put mail')).toBe('put is no command of ctl queue config');
    expect(unknown('bin/ctl queue pause')).toBe('needs 1 arguments');
    expect(unknown('bin/ctl frobnicate')).toBe('frobnicate is no command of ctl');
    expect(unknown('npm run no-such-script')).toBe('no such script');
    expect(unknown('node examples/no-such-file.mjs')).toBe('no such file');
    expect(unknown('rm -rf data')).toBe('not a command this test knows');
  });
});

/** Commands of the system that a page needs; the test of that page runs them. */
const fileCommands = new Set(['mkdir -m 700 copy', 'cp data/db.key copy/']);

/** What is wrong with a command, as far as can be reported without running it. */
function faultOf(command: string, tree: CommandShape): string | undefined {
  const [program, first = '', second = ''] = wordsOf(command);
  if (program === 'bin/ctl' || program === 'millrace') return faultOfCtl(command, tree);
  if (program === 'npm') {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const name = first === 'run' ? second : first;
    return scripts[name] ? undefined : 'no such script';
  }
  if (program === 'node') return existsSync(join(root, first)) ? undefined : 'no such file';
  if (program === 'npx' && first === 'vitest') return undefined;
  // It writes an input file; the test of its page runs it.
  if (program === 'printf') return undefined;
  return fileCommands.has(command) ? undefined : 'not a command this test knows';
}

type DependencyKind = 'dependencies' | 'devDependencies' | 'optionalDependencies';

/** The names of a package's dependencies, without those that are ours. */
function dependenciesOf(manifest: string, kind: DependencyKind): string[] {
  const listed = (JSON.parse(read(manifest)) as { [kind in string]?: object })[kind] ?? {};
  return Object.keys(listed).filter((name) => !name.startsWith('@millrace/'));
}

/** The text under a heading, up to the next one that is not below it. */
function partOf(text: string, heading: string): string {
  const [, below = ''] = text.split(`\n${heading}\n`);
  const [hashes = ''] = heading.split(' ');
  return below.split(new RegExp(`^#{1,${hashes.length}} `, 'm'))[0] ?? '';
}

test('every dependency says why it is there', () => {
  const text = read('docs/decisions/dependencies.md');
  const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}`);
  const places = [
    ...packages.map((at) => [at, 'dependencies', '## At run time', `### ${at}`] as const),
    ...packages.map((at) => [at, 'devDependencies', '## For development', `### ${at}`] as const),
    ['.', 'devDependencies', '## For development', '### The repository'] as const,
    ['bench', 'dependencies', '## For development', '### bench'] as const,
    ['agents', 'dependencies', '## For development', '### agents'] as const,
    ['agents', 'optionalDependencies', '## For development', '### agents'] as const,
  ];
  const unexplained = places.flatMap(([at, kind, half, heading]) => {
    const part = partOf(partOf(text, half), heading);
    const lines = part.split('\n').filter((line) => line.startsWith('- '));
    return dependenciesOf(join(at, 'package.json'), kind)
      .filter((name) => !lines.some((line) => line.includes(`\`${name}\``)))
      .map((name) => `${half} ${heading}: ${name}`);
  });
  expect(unexplained).toEqual([]);
});
