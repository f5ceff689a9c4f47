import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openApiDocument } from '@millrace/contract/documents';
import { daemonConfig } from '@millrace/daemon/config';
import { databaseConfig } from '@millrace/db/config';
import { loadConfig } from '@millrace/kit/config';
import { DocumentSchemas } from '@millrace/kit/http';
import { queueConfig } from '@millrace/queue/config';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseSecrets } from '../packages/queue/src/server/secrets.js';
import { fencesIn, fencesOf, markdownFiles, root } from './support/markdown.js';
import { programPages, testOptionsOf } from './support/pages.js';

/* The programs and settings that pages show: they compile, they run, the product takes them. */

// Below the root, so that programs find their packages.
const scratch = join(root, '.cache', `docs-${process.pid}`);
let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'millrace-docs-'));
  mkdirSync(scratch, { recursive: true });
  writeFileSync(join(scratch, 'package.json'), '{ "type": "module" }\n');
});
afterAll(() => {
  rmSync(scratch, { recursive: true, force: true });
  rmSync(home, { recursive: true, force: true });
});

const fences = markdownFiles().flatMap((file) => fencesOf(file));

/** What a fragment takes from the program around it. */
const surroundings: Readonly<Record<string, string>> = {
  'docs/how-to/get-notified.md Webhook':
    'const [secret, rawBody, request] = ["", "", { headers: {} }];',
  'docs/how-to/use-the-queue-over-grpc.md Receive callbacks':
    "import * as grpc from '@grpc/grpc-js';",
};

/**
 * A page as one program: the snippets of the first section come before all others, and each
 * further section is a block of its own.
 */
function programOf(file: string): string {
  const imports: string[] = [];
  const sections = new Map<string, string>();
  for (const { language, text, section } of fencesOf(file)) {
    if (language !== 'ts') continue;
    const body = text.replaceAll(/^import .*$/gm, (line) => (imports.push(line), ''));
    sections.set(section, (sections.get(section) ?? '') + body);
  }
  const [opening = '', ...rest] = sections.values();
  const blocks = rest.map((body) => `{\n${body}}\n`);
  const opened = /const (db|queue) = /.exec(opening)?.[1];
  const program = `${[...new Set(imports)].join('\n')}\n${opening}${blocks.join('')}`;
  return `${program}await ${opened}.close();\n`;
}

/** What the comments behind `console.log` promise, in order. */
function promisedOutput(program: string): string[] {
  return Array.from(program.matchAll(/console\.log\(.*; \/\/ (.+)$/gm), ([, text = '']) => text);
}

/** Compiles programs by their names; what the compiler says, and where its output is. */
function compile(programs: Record<string, string>, options: object): { said: string; out: string } {
  const folder = mkdtempSync(join(scratch, 'program-'));
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(folder, name), text);
  const config = {
    extends: '../../../tsconfig.base.json',
    compilerOptions: { composite: false, incremental: false, outDir: 'out', ...options },
    files: Object.keys(programs),
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout, status } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' });
  return { said: status === 0 ? '' : `${stdout}exit code ${status}`, out: join(folder, 'out') };
}

const nameOf = (page: string) => page.replaceAll('/', '-').replace(/\.md$/, '');
let compiled: ReturnType<typeof compile> | undefined;

/** All of them at once: the compiler reads the types of the packages each time it starts. */
function compilePrograms(): ReturnType<typeof compile> {
  const programs = programPages.map((page) => [`${nameOf(page)}.ts`, programOf(page)] as const);
  return compile(Object.fromEntries(programs), { rootDir: '.' });
}

for (const page of programPages) {
  test(`${page}: its program compiles and prints what it says`, testOptionsOf(page), () =>
    expectPrinted(page),
  );
}

function expectPrinted(page: string): void {
  const program = programOf(page);
  const { said, out } = (compiled ??= compilePrograms());
  expect(said).toBe('');
  const printed = execFileSync(process.execPath, [join(out, `${nameOf(page)}.js`)], {
    cwd: home,
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(printed.trimEnd().split('\n')).toEqual(promisedOutput(program));
}

test('the first flow charges once, although it is killed in the middle', async () => {
  const page = 'docs/tutorials/first-flow.md';
  const [program = ''] = fencesIn(page, 'Write it', 'ts');
  const [, first = '', , second = ''] = fencesIn(page, 'Kill it in the middle', '');
  const { said, out } = compile({ 'ship.ts': program }, { rootDir: '.' });
  expect(said).toBe('');
  const killed = spawn(process.execPath, [join(out, 'ship.js')], { cwd: home });
  let printed = '';
  for await (const chunk of killed.stdout) {
    printed += String(chunk);
    if (printed.includes('kill -9')) killed.kill('SIGKILL');
  }
  expect(printed).toBe(first.replace(/\d+\)/, `${killed.pid})`));
  const finished = spawnSync(process.execPath, [join(out, 'ship.js'), 'ada'], {
    cwd: home,
    encoding: 'utf8',
    timeout: 60_000,
  });
  // The step that was killed may run again.
  expect(finished.stdout.replace(/^May order .*\n/, '')).toBe(second);
  expect(finished.status).toBe(0);
});

test('the programs of the other pages compile', () => {
  const others = fences.filter(
    ({ language, file }) => language === 'ts' && !programPages.includes(file),
  );
  expect(others.map(({ file }) => file)).toContain('packages/client/README.md');
  const programs = others.map(({ text }, at) => [`${at}.ts`, text] as const);
  const options = { noEmit: true, lib: ['es2023', 'dom'] };
  expect(compile(Object.fromEntries(programs), options).said).toBe('');
});

test('the JavaScript of every page stands up to the compiler', () => {
  const snippets = fences.filter(({ language }) => language === 'js');
  expect(snippets.length).toBeGreaterThan(3);
  const files = snippets.map(({ file, section, text }) => {
    const around = surroundings[`${file} ${section}`];
    return `${around ?? ''}\n${text}`;
  });
  const { said } = compile(Object.fromEntries(files.map((text, at) => [`${at}.js`, text])), {
    allowJs: true,
    checkJs: true,
    noEmit: true,
    // Pages show plain JavaScript, which says no types.
    noImplicitAny: false,
    strictNullChecks: false,
    exactOptionalPropertyTypes: false,
    noUnusedLocals: false,
    lib: ['es2023', 'dom'],
  });
  expect(said).toBe('');
});

test('the receiver of a webhook verifies a call as the guide shows', async () => {
  const [snippet = ''] = fencesIn('docs/how-to/get-notified.md', 'Webhook', 'js');
  const [opening, body] = snippet.split('\n\n');
  const receive = `export function receive(secret, rawBody, request) {\n${body}return alert;\n}`;
  const file = join(scratch, 'receiver.js');
  writeFileSync(file, `${opening}\nexport { Webhook };\n${receive}\n`);
  const receiver = await import(pathToFileURL(file).href);
  const secret = `whsec_${Buffer.from('grease the wheel now and then').toString('base64')}`;
  const rawBody = '{"kind":"errored"}';
  const at = new Date();
  const headers = {
    'webhook-id': 'note-1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new receiver.Webhook(secret).sign('note-1', at, rawBody),
  };
  expect(receiver.receive(secret, rawBody, { headers })).toEqual({ kind: 'errored' });
  expect(() => receiver.receive(secret, '{}', { headers })).toThrow();
});

test('the page of the dashboard guide compiles', () => {
  const [page = ''] = fencesOf('packages/dashboard/README.md')
    .filter(({ language }) => language === 'tsx')
    .map(({ text }) => text);
  const text = page.replaceAll("'../../", `'${join(root, 'packages/dashboard/src')}/`);
  const { said } = compile(
    { 'page.tsx': text },
    {
      rootDir: root,
      noEmit: true,
      jsx: 'react-jsx',
      lib: ['es2023', 'dom', 'dom.iterable'],
      types: ['vite/client'],
    },
  );
  expect(said).toBe('');
});

function settingsIn(text: string): string {
  const file = join(home, 'settings.yaml');
  writeFileSync(file, text);
  return file;
}

const schemas = new DocumentSchemas(openApiDocument('queue'));

function expectSchema(name: string, value: unknown): void {
  const check = schemas.named(name);
  expect(check.accepts(value) ? [] : check.faults(value)).toEqual([]);
}

const takeQueue = (text: string) =>
  loadConfig(queueConfig, { flags: { config: settingsIn(text) }, environment: { HOME: home } });

function takeDaemon(text: string): void {
  const flags = { config: settingsIn(text) };
  const { warnings } = loadConfig(daemonConfig, { flags, environment: { HOME: home } });
  expect(warnings).toEqual([]);
}

const takeDatabase = (text: string) =>
  loadConfig(databaseConfig, { flags: { config: settingsIn(text) }, environment: { HOME: home } });

const takeQueueConfig = (text: string) => expectSchema('QueueConfigInput', parse(text));

/** Who reads the settings and bodies that pages show, fence by fence. */
const readers: Readonly<Record<string, readonly ((text: string) => unknown)[]>> = {
  'docs/tutorials/first-task.md Write the files': [
    takeQueue,
    (text) => parseSecrets(text, 'secrets.yaml'),
    takeQueueConfig,
  ],
  'docs/how-to/submit-tasks.md Over HTTP': [
    (text) => expectSchema('SubmitTaskRequest', JSON.parse(text)),
  ],
  'docs/how-to/schedule-work.md Create a schedule': [
    (text) => expectSchema('ScheduleInput', parse(text)),
  ],
  'docs/how-to/run-the-queue-on-postgresql.md ': [takeQueue],
  'docs/how-to/use-the-queue-over-grpc.md Receive callbacks': [takeQueueConfig, takeQueue],
  'docs/how-to/answer-agents-from-your-phone.md Send questions to a chat': [takeDaemon],
  'docs/how-to/answer-agents-from-your-phone.md Answer without a person': [takeDaemon],
  'docs/how-to/add-your-own-cli.md ': [takeDaemon],
  'docs/how-to/get-notified.md Webhook': [takeDaemon],
  'docs/how-to/prepare-worktrees.md ': [
    (text) => takeDaemon(`repos: [{path: /x, worktree: ${JSON.stringify(parse(text).worktree)}}]`),
  ],
  'docs/how-to/prepare-worktrees.md Rules in the settings': [takeDaemon],
  'docs/how-to/spread-agents-over-machines.md Create the queue': [takeQueueConfig],
  'docs/how-to/spread-agents-over-machines.md Configure each daemon': [takeDaemon],
  'docs/how-to/run-pipelines.md Pipelines': [
    // test/docs-servers.test.ts runs it.
    (text) => expect(parse(text)).toMatchObject({ jobs: expect.any(Array) }),
  ],
  'docs/how-to/run-a-plan.md Write the plan': [
    // test/docs-servers.test.ts runs it.
    (text) => expect(parse(text)).toMatchObject({ title: 'uploads', tasks: expect.any(Array) }),
  ],
  'docs/how-to/react-to-changes.md Connectors': [
    // test/docs-servers.test.ts runs it.
    (text) => expect(parse(text)).toMatchObject({ connectors: expect.any(Array) }),
  ],
  'docs/how-to/queue-work-for-agents.md Set it up by hand': [
    (text) => takeDaemon(text.replaceAll('...', Buffer.alloc(24).toString('base64'))),
    takeQueueConfig,
  ],
  'docs/how-to/restore-to-a-point-in-time.md Archive the log': [takeDatabase],
  'docs/how-to/run-database-followers.md Bring the old leader back': [
    // Lines of a file that the server writes, cut short.
    (text) => expect(text.trim().split('\n')).toHaveLength(2),
  ],
};

test('every setting and body that a page shows has a reader, and the reader takes it', () => {
  const shown = fences.filter(({ language }) => ['yaml', 'json'].includes(language));
  const places = new Map<string, string[]>();
  for (const { file, section, text } of shown) {
    const place = `${file} ${section}`;
    places.set(place, [...(places.get(place) ?? []), text]);
  }
  expect([...places.keys()].toSorted()).toEqual(Object.keys(readers).toSorted());
  for (const [place, texts] of places) {
    expect(texts.length, place).toBe(readers[place]!.length);
    for (const [index, text] of texts.entries()) readers[place]![index]!(text);
  }
});

test('a setting that is not there is noticed', () => {
  expect(() => takeQueue('tokens_file: t\nlisten_at: 127.0.0.1:1\n')).toThrow('listen_at');
  expect(() => takeDaemon('notify:\n  webhook: true\n')).toThrow('to deeply equal');
  expect(() => takeQueueConfig('{"callback":{"uri":"http://a"}}')).toThrow();
});
