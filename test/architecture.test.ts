import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sourceFiles } from '../scripts/language.mjs';
import { layers, shownOrder } from '../scripts/layers.mjs';
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

  test.each(Object.keys(layers).filter((folder) => folder.split('/').length === 3))(
    'layers: the page shows those of %s',
    (folder) => {
      const name = folder.split('/')[1];
      expect(read('ARCHITECTURE.md')).toContain(`- ${name}: \`${shownOrder(folder)}\``);
    },
  );

  test('paths: every path of the page exists, a wrong one is noticed', () => {
    expect(missingPaths(read('ARCHITECTURE.md'))).toEqual([]);
    const wrong = '- [kit](packages/kit/src): `gone/`\n`packages/kit/nowhere`\n';
    expect(missingPaths(wrong)).toEqual(['packages/kit/src/gone', 'packages/kit/nowhere']);
  });

  test('packages: the page names every folder of the daemon', () => {
    const [line = ''] = /^- \[daemon\].*$/m.exec(read('ARCHITECTURE.md')) ?? [];
    const named = Array.from(line.matchAll(/`([a-z-]+)\/`/g), ([, name]) => name);
    const source = join(root, 'packages', 'daemon', 'src');
    const folders = readdirSync(source, { withFileTypes: true }).filter((one) => one.isDirectory());
    expect(named.toSorted()).toEqual(folders.map(({ name }) => name).toSorted());
  });

  test('the page stays short', () => {
    expect(Buffer.byteLength(read('ARCHITECTURE.md'))).toBeLessThan(9_000);
  });
});

/** Paths that a page names: whole ones, and folders in the line of a package. */
function missingPaths(page: string): string[] {
  const whole = Array.from(page.matchAll(/`(packages\/[\w./-]+)`/g), ([, path = '']) => path);
  const folders = Array.from(
    page.matchAll(/^- \[[a-z]+\]\((packages\/[a-z]+)(?:\/src)?\): (.*)$/gm),
    ([, home = '', text = '']) =>
      Array.from(text.matchAll(/`([a-z-]+|src\/generated)\/`/g), ([, name = '']) =>
        name.startsWith('src/') ? `${home}/${name}` : `${home}/src/${name}`,
      ),
  );
  return [...folders.flat(), ...whole].filter((path) => !existsSync(join(root, path)));
}

describe('operations', () => {
  /** Schemas, and whether a text is base64: nothing of a request or a response. */
  const allowed = ['Check', 'DocumentSchemas', 'isBase64'];

  function interfacesIn(text: string): string[] {
    const outside = /from '(?:node:(?:http|http2|net|tls)|commander|@modelcontextprotocol\/[^']+)'/;
    const names = Array.from(
      text.matchAll(/import (?:type )?\{([^}]+)\} from '@millrace\/kit\/http'/g),
      ([, list = '']) => list.split(',').map((name) => name.trim()),
    );
    const problems = names.flat().filter((name) => name !== '' && !allowed.includes(name));
    return outside.test(text) ? [...problems, 'an interface'] : problems;
  }

  test('know no interface', () => {
    const files = sources.filter((file) => /packages\/\w+\/src\/operations\//.test(file));
    expect(files.length).toBeGreaterThan(15);
    const found = files.filter(
      (file) => interfacesIn(readFileSync(join(root, file), 'utf8')).length > 0,
    );
    expect(found).toEqual([]);
  });

  test('one that knows an interface is noticed', () => {
    expect(interfacesIn(`import { Exchange } from '@millrace/kit/http';`)).toEqual(['Exchange']);
    expect(interfacesIn(`import { createServer } from 'node:http';`)).toEqual(['an interface']);
    expect(interfacesIn(`import { isBase64 } from '@millrace/kit/http';`)).toEqual([]);
  });
});

describe('environment', () => {
  /** Programs of their own, and the warning about calls outside a transaction. */
  const readers = [
    'packages/ctl/src/base/command-name.ts',
    'packages/ctl/src/git/git.ts',
    'packages/ctl/src/main.ts',
    'packages/daemon/src/acp-host/acp-main.ts',
    'packages/daemon/src/acp-host/terminals.ts',
    'packages/daemon/src/fake-agent/main.ts',
    'packages/engine/src/api/collection-port.ts',
    'packages/kit/src/simulation/seeds.ts',
  ];

  test('is an argument; these files alone read it themselves', () => {
    const found = sources.filter((file) =>
      readFileSync(join(root, file), 'utf8').includes('process.env'),
    );
    expect(found.toSorted()).toEqual(readers);
  });
});

describe('other pages', () => {
  test('client: uses no API of Node', () => {
    const files = sources.filter((file) => file.startsWith('packages/client/'));
    expect(files.length).toBeGreaterThan(3);
    const found = files.filter((file) =>
      /from 'node:|\bprocess\.|\bBuffer\b/.test(readFileSync(join(root, file), 'utf8')),
    );
    expect(found).toEqual([]);
  });

  test('GLOSSARY.md: the drivers are those of the contract', () => {
    const contract = read('packages/contract/daemon.openapi.yaml');
    const [, drivers = ''] = /enum: \[(tmux, [^\]]+)\]/.exec(contract) ?? [];
    const [line = ''] = /^- \*\*driver\*\*.*$/m.exec(read('GLOSSARY.md')) ?? [];
    expect(Array.from(line.matchAll(/`(\w+)`/g), ([, name]) => name)).toEqual(drivers.split(', '));
  });

  test('spend-and-savings.md: the command lines are those whose transcripts are read', () => {
    const readers = read('packages/daemon/src/transcripts/readers.ts');
    const named = Array.from(readers.matchAll(/^ {2}(\w+)Reader,$/gm), ([, name]) => name);
    const [line = ''] = /^The daemon reads the transcripts.*$/m.exec(
      read('docs/explanation/spend-and-savings.md'),
    )!;
    expect(Array.from(line.matchAll(/`(\w+)`/g), ([, name]) => name)).toEqual(named);
  });

  test('decisions: the index has every page once, and no other', () => {
    const index = read('docs/decisions/README.md').split('\n## ')[0]!;
    const listed = Array.from(index.matchAll(/^- \[(\d{4})\]\((.+?)\)/gm), ([, , file]) => file);
    const pages = readdirSync(join(root, 'docs', 'decisions')).filter((name) => /^\d/.test(name));
    expect(listed).toEqual(pages.toSorted());
    const numbers = new Set(pages.map((name) => Number(name.slice(0, 4))));
    expect([41, 42, 43, 44, 45, 46].filter((number) => numbers.has(number))).toEqual([]);
  });

  test('decisions: what was accepted while it pays is judged by the 20 % rule', () => {
    const [, table = ''] = read('docs/decisions/README.md').split('\n## ');
    const pages = readdirSync(join(root, 'docs', 'decisions'));
    const paying = pages.filter((name) =>
      read(`docs/decisions/${name}`).includes('Status: accepted while it pays'),
    );
    expect(paying.length).toBeGreaterThan(1);
    expect(paying.filter((name) => !table.includes(`(${name})`))).toEqual([]);
  });

  test('queue-on-postgres.md: every table exists', () => {
    const sql = read('packages/queue/src/storage/postgres/schema.sql.ts');
    const page = read('docs/explanation/queue-on-postgres.md');
    const tables = Array.from(page.matchAll(/^\| `(\w+)`/gm), ([, name = '']) => name);
    expect(tables.length).toBeGreaterThan(5);
    const created = new RegExp(
      'CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?millrace\\.(\\w+)',
      'g',
    );
    const made = Array.from(sql.matchAll(created), ([, name]) => name);
    expect(tables.filter((name) => !made.includes(name))).toEqual([]);
  });

  test('security.md: the roles of the queue are those it knows', () => {
    const source = read('packages/queue/src/operations/base/context.ts');
    const [, type = ''] = /^export type Role = (.+);$/m.exec(source) ?? [];
    const roles = Array.from(type.matchAll(/'(\w+)'/g), ([, name]) => name);
    const [line = ''] = /^- \*\*queue token\*\*.*$/m.exec(read('docs/security.md')) ?? [];
    const named = Array.from(line.matchAll(/`(\w+)`/g), ([, name]) => name);
    expect(named).toEqual(roles);
  });
});

describe('clock and random', () => {
  /** The system implementations, programs of their own, and code that runs in a browser. */
  const allowed =
    /^packages\/(?:kit\/src\/(?:base\/clock-and-random|simulation\/rest)\.ts|client\/|worker\/|dashboard\/|daemon\/src\/fake-agent\/)/;
  // An interval that does nothing only keeps the process alive; it decides nothing.
  const forbidden =
    /\bDate\.now\(|\bMath\.random\(|(?<!\.)\bset(?:Timeout|Interval)\((?!\(\) => undefined)|new Date\(\)/;

  function usesIn(file: string, text: string): string[] {
    const lines = text.split('\n');
    return lines.flatMap((line, at) =>
      forbidden.test(line) && !/^\s*(?:\*|\/\/)/.test(line) ? [`${file}:${at + 1}`] : [],
    );
  }

  test('are injected everywhere else', () => {
    const uses = sources
      .filter((file) => !allowed.test(file))
      .flatMap((file) => usesIn(file, readFileSync(join(root, file), 'utf8')));
    expect(uses).toEqual([]);
  });

  test.each([
    'Date.now()',
    'new Date()',
    'Math.random()',
    'setTimeout(run, 1)',
    'setInterval(f, 1)',
  ])('a use of %s is noticed', (use) => {
    expect(usesIn('a.ts', `// ${use}\nconst a = ${use};\n`)).toEqual(['a.ts:2']);
  });
});
