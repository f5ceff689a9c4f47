import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openApiDocument } from '@millrace/contract/documents';
import { databaseConfig, serveDatabase, type RunningDatabase } from '@millrace/db/serve';
import { systemClock } from '@millrace/kit/clock';
import { loadConfig } from '@millrace/kit/config';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { describedCommands, wordsOf } from '../src/in-process.test-support.js';
import { FakeDaemon } from './fake-daemon.js';
import { QueueServer, runCtl, tokens } from './queue-server.js';

/*
 * The output of the commands that list, show and act, byte for byte. The lines of `golden/NAME.in`
 * are run, and `golden/NAME.txt` has what they printed: at two widths and as JSON. A change of
 * output that is meant is recorded with `npx vitest run packages/ctl/test/golden.test.ts -u`.
 */

const golden = join(import.meta.dirname, 'golden');
const now = Date.parse('2026-01-15T10:00:00.000Z');
let folder = '';
let fake: FakeDaemon;
beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['Date'], now });
  folder = mkdtempSync(join(tmpdir(), 'ctl-golden-'));
  fake = await FakeDaemon.start();
});
beforeEach(() => vi.setSystemTime(now));
afterAll(async () => {
  vi.useRealTimers();
  await fake.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Splits at spaces, except within single quotes. */
function split(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word!);
}

function linesOf(name: string): string[] {
  const text = readFileSync(join(golden, `${name}.in`), 'utf8');
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

/** Replaces what differs from run to run, by something of the same width where tables are wide. */
function masked(text: string): string {
  return text
    .replaceAll(folder, '/golden')
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:0')
    .replaceAll(/\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b/g, (id) =>
      id.startsWith('01K9') || id.startsWith('01JD') ? id : 'X'.repeat(26),
    )
    .replaceAll(/\b(?:[0-9a-f]{32}){1,2}\b/g, (hash) => 'h'.repeat(hash.length))
    .replaceAll(/\b[0-9a-z]{52}\b/g, 'secret')
    .replaceAll(/\bc1\.[\w-]+\.[\w-]+/g, 'c1.cursor')
    .replaceAll(/whsec_\S+/g, 'whsec_...')
    .replaceAll(/mr_[a-z0-9]+_[a-z0-9]+/g, 'mr_id_secret')
    .replaceAll(/"seq": "?\d+"?/g, '"seq": 0')
    .replaceAll(/(version"?:? "?)\d+\.\d+\.\d+/g, '$1N.N.N');
}

const modes = [
  { title: '', flags: [], columns: 80 },
  { title: ' (140 columns)', flags: [], columns: 140 },
  { title: ' --json', flags: ['--json'], columns: 80 },
];

/** One line in every mode; `act!` in front of a line runs it once, because it changes something. */
async function transcript(lines: readonly string[], env: Record<string, string>): Promise<string> {
  const pieces: string[] = [];
  for (const each of lines) {
    const isAct = each.startsWith('act! ');
    const line = each.replace(/^act! /, '');
    let before = '';
    for (const { title, flags, columns } of isAct ? modes.slice(0, 1) : modes) {
      const cwd = process.cwd();
      process.chdir(folder);
      const { code, out, err } = await runCtl([...split(line), ...flags], {
        env: { HOME: folder, ...env },
        columns,
      }).finally(() => process.chdir(cwd));
      const shown = masked(
        `${out}${err === '' ? '' : `! ${err}`}${code === 0 ? '' : `exit ${code}\n`}`,
      );
      if (shown !== before) pieces.push(`$ ctl ${line}${title}\n${shown}\n`);
      before = shown;
    }
  }
  return pieces.join('');
}

async function matches(name: string, text: string): Promise<void> {
  await expect(text).toMatchFileSnapshot(join(golden, `${name}.txt`));
}

/* Servers that answer with the examples of the contract. */

type Node = Readonly<Record<string, unknown>>;
const documents = (['queue', 'daemon'] as const).map((name) => openApiDocument(name) as Node);

function follow(document: Node, node: unknown): Node {
  const { $ref: pointer } = (node ?? {}) as { $ref?: string };
  if (pointer === undefined) return (node ?? {}) as Node;
  return pointer
    .slice(2)
    .split('/')
    .reduce<Node>((at, step) => at[step] as Node, document);
}

/** The first example of a successful response. */
function exampleOf(method: string, path: string): { status: number; body: unknown } | undefined {
  for (const document of documents) {
    for (const [template, item] of Object.entries(document['paths'] as Node)) {
      const pattern = new RegExp(`^${template.replaceAll(/\{[^}]+\}/g, '[^/]+')}$`);
      const operation = (item as Node)[method.toLowerCase()] as Node | undefined;
      if (!operation || !pattern.test(path)) continue;
      for (const [status, response] of Object.entries(operation['responses'] as Node)) {
        if (!status.startsWith('2')) continue;
        const answer = follow(document, response);
        const media = ((answer['content'] ?? {}) as Node)['application/json'] as Node | undefined;
        if (!media) return { status: Number(status), body: '' };
        const [example] = Object.values((media['examples'] ?? {}) as Node);
        if (example) return { status: Number(status), body: follow(document, example)['value'] };
      }
    }
  }
  return undefined;
}

const notFound = {
  status: 404,
  body: { code: 'TASK_NOT_FOUND', detail: 'There is no such thing.', status: 404 },
};

function answerWith(change: (body: unknown) => unknown): void {
  fake.routes.get = ((line: string) => {
    const [method = '', path = ''] = line.split(' ');
    const example = exampleOf(method, path);
    return example ? { ...example, body: change(example.body) } : notFound;
  }) as never;
}

/** The example with empty lists. */
function emptied(body: unknown): unknown {
  if (Array.isArray(body)) return [];
  if (typeof body !== 'object' || body === null) return body;
  const entries = Object.entries(body).map(([name, value]) => [
    name,
    Array.isArray(value) ? [] : name === 'next_cursor' ? '' : value,
  ]);
  return Object.fromEntries(entries) as unknown;
}

const fakeEnv = () => ({
  MILLRACE_URL: fake.url,
  MILLRACE_TOKEN: 'x',
  MILLRACE_QUEUE_URL: fake.url,
  MILLRACE_QUEUE_TOKEN: 'mr_a_b',
});

test.each(['queue', 'daemon'])('%s: the examples of the contract', async (name) => {
  answerWith((body) => body);
  await matches(name, await transcript(linesOf(name), fakeEnv()));
});

test.each(['queue', 'daemon'])('%s: empty lists, and refusals', async (name) => {
  const lines = linesOf(name);
  answerWith(emptied);
  const empty = await transcript(lines, fakeEnv());
  fake.routes.get = () => notFound;
  await matches(`${name}-empty`, empty + (await transcript(lines, fakeEnv())));
});

test('queue: a real server', async () => {
  const server = new QueueServer();
  try {
    await server.start();
    await server.makeQueue('mail', { retry: { max_attempts: 1 } });
    for (const [at, handler] of ['break', 'refuse', 'break', 'fine'].entries()) {
      vi.setSystemTime(now + 1_000 * at);
      await server.ctl(['submit', 'mail', handler, '--wait']);
    }
    await server.ok([
      'config',
      'set',
      'pull',
      server.write('pull.json', { callback: { protocol: 'pull' } }),
    ]);
    const env = { MILLRACE_QUEUE_URL: server.url(), MILLRACE_QUEUE_TOKEN: tokens.root };
    const text = await transcript(linesOf('queue-server'), env);
    await matches('queue-server', text.replaceAll(/\d+(\.\d+)? ms/g, 'N ms'));
  } finally {
    await server.remove();
  }
});

test('db: a real server', async () => {
  let server: RunningDatabase | undefined;
  try {
    const ports = { grpc: '127.0.0.1:0', http: '127.0.0.1:0' };
    // On a busy machine any query may be slow, and then there is advice.
    const flags = { data: join(folder, 'db'), ...ports, slowQueryMs: '3600000' };
    const { values } = loadConfig(databaseConfig, { environment: {}, flags });
    const world = { clock: systemClock, random: systemRandom, log: silentLog };
    server = await serveDatabase(values, world);
    const url = server.listeners.find(({ listener }) => listener === 'socket')!.url;
    writeFileSync(join(folder, 'person.json'), '{"properties":{"name":{"type":"string"}}}');
    const text = await transcript(linesOf('db'), { MILLRACE_DB_URL: url });
    await matches('db', text);
  } finally {
    await server?.stop();
  }
});

test('every command: help and wrong use', async () => {
  const commands = await describedCommands();
  const pieces: string[] = [];
  for (const command of commands) {
    const { out } = await runCtl([...wordsOf(command), '--help'], { columns: 80 });
    pieces.push(`$ ${command.path} --help\n${out}\n`);
    if (/^ctl (check|git|completion|help)\b/.test(command.path)) continue;
    const needs = command.arguments.some(({ required }) => required);
    for (const wrong of needs ? [[], ['--no-such-flag']] : [['--no-such-flag']]) {
      const ended = await runCtl([...wordsOf(command), ...wrong], { columns: 80 });
      pieces.push(`$ ${[command.path, ...wrong].join(' ')}\n${ended.err}exit ${ended.code}\n\n`);
    }
  }
  await matches('help', pieces.join(''));
});
