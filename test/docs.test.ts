import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const scripts = scriptsOf('package.json');

interface Fence {
  language: string;
  text: string;
  /** The last second-level heading before it. */
  section: string;
}

function markdownFiles(folder = root): string[] {
  const passedOver = new Set(['node_modules', 'dist', 'coverage']);
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      return passedOver.has(entry.name) || entry.name.startsWith('.') ? [] : markdownFiles(path);
    }
    return entry.name.endsWith('.md') ? [relative(root, path)] : [];
  });
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

function scriptsOf(manifest: string): Readonly<Record<string, string>> {
  return (JSON.parse(read(manifest)) as { scripts?: Record<string, string> }).scripts ?? {};
}

function fencesOf(text: string): Fence[] {
  const fences: Fence[] = [];
  let open: Fence | undefined;
  let section = '';
  for (const line of text.split('\n')) {
    if (open && line === '```') {
      fences.push(open);
      open = undefined;
    } else if (open) open.text += `${line}\n`;
    else if (line.startsWith('```')) open = { language: line.slice(3).trim(), text: '', section };
    else if (line.startsWith('## ')) section = line.slice(3);
  }
  if (open) throw new Error(`A fence is never closed:\n${open.text.slice(0, 200)}`);
  return fences;
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```/gm, '').replaceAll(/`[^`\n]*`/g, 'code');
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

/** The commands of a document's `sh` fences, without their comments. */
function commandsOf(file: string): string[] {
  return fencesOf(read(file))
    .filter(({ language }) => language === 'sh')
    .flatMap(({ text }) => text.split('\n'))
    .map((line) => line.replace(/\s+# .*$/, '').trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

/** What is wrong with a command, as far as can be told without running it. */
function faultOf(command: string): string | undefined {
  const [program, ...args] = command.replace(/^(\w+=\S+ )+/, '').split(' ');
  const [first = '', second = ''] = args;
  if (program === 'npm') {
    if (first === 'start' || first === 'test') return scripts[first] ? undefined : 'no such script';
    if (first !== 'run') return 'not a command this test knows';
    const at = args.indexOf('-w');
    const manifest = at < 0 ? '' : `packages/${args[at + 1]?.replace('@millrace/', '')}/`;
    return scriptsOf(`${manifest}package.json`)[second] ? undefined : 'no such script';
  }
  if (program === 'node') return existsSync(join(root, first)) ? undefined : 'no such file';
  if (program === 'npx' && first === 'vitest') {
    const path = args.find((arg) => arg.startsWith('packages/'));
    return path && existsSync(join(root, path)) ? undefined : 'no such path';
  }
  return program === 'bin/ctl' ? undefined : 'not a command this test knows';
}

describe.each(markdownFiles())('%s', (file) => {
  test('every relative link leads somewhere', () => {
    expect(brokenLinks(file)).toEqual([]);
  });

  test('every shell command is there to be run', () => {
    const faults = commandsOf(file).map((command) => [command, faultOf(command)]);
    expect(faults.filter(([, fault]) => fault !== undefined)).toEqual([]);
  });
});

test('a broken link and an unknown command are noticed', () => {
  const links = '[a](no-such.md) [b](GLOSSARY.md#no-such) [c](GLOSSARY.md#database) `[d](code)`';
  expect(brokenLinks('README.md', links)).toEqual(['no-such.md', 'GLOSSARY.md#no-such']);
  expect(brokenLinks('docs/database.md', '[a](database.md) [b](README.md)')).toEqual(['README.md']);
  expect(faultOf('npm run no-such-script')).toBe('no such script');
  expect(faultOf('node examples/no-such-file.mjs')).toBe('no such file');
  expect(faultOf('rm -rf data')).toBe('not a command this test knows');
});

/** The names of a package's dependencies, without those that are ours. */
function dependenciesOf(manifest: string, kind: 'dependencies' | 'devDependencies'): string[] {
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

const safe = commandsOf('README.md').filter((command) =>
  /^bin\/ctl (--\w+|help|doctor|completion)\b/.test(command),
);

test('the README shows commands that are safe to try', () => {
  expect(safe).toContain('bin/ctl doctor');
});

test.each(safe)('%s works as the README writes it', (command) => {
  const [program = '', ...args] = command.split(' ');
  // Whether this user may write in the usual place is not what is tested here.
  const env = { ...process.env, MILLRACE_DATA_DIR: join(tmpdir(), 'millrace-docs-data') };
  const result = spawnSync(process.execPath, [join(root, program), ...args], {
    cwd: root,
    encoding: 'utf8',
    env,
  });
  expect(result.stderr).toBe('');
  expect(result.status).toBe(0);
  expect(result.stdout).not.toBe('');
});

/**
 * The guide as one program: the snippets of the first section are the beginning of all others, and
 * each further section is a block of its own.
 */
function programOf(file: string): string {
  const imports: string[] = [];
  const sections = new Map<string, string>();
  for (const { language, text, section } of fencesOf(read(file))) {
    if (language !== 'ts') continue;
    const body = text.replaceAll(/^import .*$/gm, (line) => (imports.push(line), ''));
    sections.set(section, (sections.get(section) ?? '') + body);
  }
  const [opening = '', ...rest] = sections.values();
  const blocks = rest.map((body) => `{\n${body}}\n`);
  return `${[...new Set(imports)].join('\n')}\n${opening}${blocks.join('')}await db.close();\n`;
}

/** What the comments behind `console.log` promise, in order. */
function promisedOutput(program: string): string[] {
  return Array.from(program.matchAll(/console\.log\(.*; \/\/ (.+)$/gm), ([, text = '']) => text);
}

test('every snippet of the database guide compiles, runs and prints what it says', async () => {
  const program = programOf('docs/database.md');
  const scratch = join(root, '.cache', `docs-${process.pid}`);
  const home = mkdtempSync(join(tmpdir(), 'millrace-docs-'));
  const config = {
    extends: '../../tsconfig.base.json',
    compilerOptions: { composite: false, incremental: false, rootDir: '.', outDir: 'out' },
    files: ['guide.ts'],
  };
  try {
    await mkdir(scratch, { recursive: true });
    writeFileSync(join(scratch, 'package.json'), '{ "type": "module" }\n');
    writeFileSync(join(scratch, 'tsconfig.json'), JSON.stringify(config));
    writeFileSync(join(scratch, 'guide.ts'), program);
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    const compiled = spawnSync(process.execPath, [tsc, '-p', scratch], { encoding: 'utf8' });
    expect(compiled.stdout).toBe('');
    expect(compiled.status).toBe(0);
    const printed = execFileSync(process.execPath, [join(scratch, 'out', 'guide.js')], {
      cwd: home,
      encoding: 'utf8',
    });
    expect(printed.trimEnd().split('\n')).toEqual(promisedOutput(program));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
    rmSync(home, { recursive: true, force: true });
  }
});
