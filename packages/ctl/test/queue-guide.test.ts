import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createListener, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Lifecycle } from '../src/lifecycle.js';
import type { CommandShape } from '../src/shape.js';
import { runCtl } from './queue-server.js';

/*
 * Follows docs/queue.md: its files, its handler, its five commands. Only ports are others, and the
 * token is handed on as the guide says.
 */
const root = fileURLToPath(new URL('../../../', import.meta.url));
const guide = readFileSync(join(root, 'docs', 'queue.md'), 'utf8');
// Below the root, so that the handler finds its package.
const folder = join(root, '.cache', `queue-guide-${process.pid}`);
const before = process.cwd();
const env: Record<string, string> = { HOME: folder, MILLRACE_LOG: 'error' };
let handler: ChildProcess;
let handlerSaid = '';
let stopServer: () => void = () => undefined;
let serving: Promise<unknown> = Promise.resolve();

/** The fences of a section, by their language. */
function fences(section: string, language: string): string[] {
  const [, rest = ''] = guide.split(`\n## ${section}\n`);
  const text = rest.split('\n## ')[0] ?? '';
  const found = text.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\``, 'gm'));
  return Array.from(found, ([, body = '']) => body);
}

async function freePort(): Promise<number> {
  const listener = createListener().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, 'close');
  return port;
}

/** `bin/ctl queue ...` as words, without its quotes. */
function wordsOf(line: string): string[] {
  const words = line.match(/'[^']*'|\S+/g) ?? [];
  return words.slice(1).map((word) => word.replace(/^'(.*)'$/, '$1'));
}

beforeAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  process.chdir(folder);
  const port = await freePort();
  const [queue = '', secrets = '', mail = ''] = fences('The first task', 'yaml');
  const anyPorts = 'metrics_listen: 127.0.0.1:0\n';
  const listen = queue.replace('127.0.0.1:8081', '127.0.0.1:0').replace('9000', String(port));
  writeFileSync('queue.yaml', listen + anyPorts);
  writeFileSync('secrets.yaml', secrets);
  writeFileSync('mail.yaml', mail.replace('9000', String(port)));
  writeFileSync('handler.mjs', fences('The first task', 'js')[0] ?? '');
  const secret = /whsec_\S+/.exec(secrets)?.[0] ?? '';
  handler = spawn(process.execPath, ['handler.mjs'], {
    env: { ...process.env, MAIL_SIGNING_SECRET: secret, PORT: String(port) },
  });
  const hear = (text: Buffer) => void (handlerSaid += text.toString());
  handler.stdout?.on('data', hear);
  handler.stderr?.on('data', hear);
});
afterAll(async () => {
  handler.kill();
  stopServer();
  await serving;
  process.chdir(before);
  rmSync(folder, { recursive: true, force: true });
});

/** Resolves when the server has said where it listens. */
async function serve(args: readonly string[]): Promise<string> {
  const stopped = new Promise<void>((resolve) => (stopServer = resolve));
  const lifecycle: Lifecycle = {
    interrupted: new AbortController().signal,
    serve: (work) => work(stopped),
  };
  return new Promise((resolve, reject) => {
    let out = '';
    const onOut = (text: string) => {
      out += text;
      if (!out.includes('"metrics"')) return;
      resolve((JSON.parse(out.split('\n')[0]!) as { url: string }).url);
    };
    serving = runCtl(args, { env, lifecycle, onOut }).then(({ code, err }) => {
      if (code !== 0) reject(new Error(`serve ended with ${code}: ${err}`));
    });
  });
}

test('every command of the guide is there, with its flags and arguments', async () => {
  const { out } = await runCtl(['queue', '--help', '--json'], { env });
  const group = JSON.parse(out) as CommandShape;
  const lines = guide.matchAll(/^bin\/ctl queue .+$/gm);
  const faults = Array.from(lines, ([line]) => ({ line, fault: faultOf(line, group) }));
  expect(faults.length).toBeGreaterThan(25);
  expect(faults.filter(({ fault }) => fault !== undefined)).toEqual([]);
  expect(faultOf('bin/ctl queue redrive mail --filter x', group)).toBe('no flag --filter');
  expect(faultOf('bin/ctl queue config put mail', group)).toBe('put is no command');
});

function faultOf(line: string, group: CommandShape): string | undefined {
  const words = wordsOf(line).slice(1);
  let command = group;
  while (command.commands.length > 0) {
    const word = words.shift() ?? 'nothing';
    const next = command.commands.find(({ name }) => name === word);
    if (!next) return `${word} is no command`;
    command = next;
  }
  const flags = new Map(command.options.map(({ long, value }) => [long, value]));
  let given = 0;
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (!word.startsWith('--')) given++;
    else if (!flags.has(word)) return `no flag ${word}`;
    else if (flags.get(word) !== null) at++;
  }
  const needed = command.arguments.filter(({ required }) => required).length;
  return given < needed ? `needs ${needed} arguments` : undefined;
}

test('the five commands of the guide carry a task to its handler', async () => {
  const lines = (fences('The first task', 'sh')[0] ?? '').trim().split('\n').map(wordsOf);
  expect(lines.map((words) => words[1])).toEqual(['token', 'serve', 'config', 'test', 'submit']);
  const [token = [], serveLine = [], config = [], probe = [], submit = []] = lines;
  const made = await runCtl(token, { env });
  env['MILLRACE_QUEUE_TOKEN'] = /^ {2}(mr_\S+)$/m.exec(made.out)?.[1] ?? '';
  env['MILLRACE_QUEUE_URL'] = await serve(serveLine);
  expect(await runCtl(config, { env })).toMatchObject({ code: 0, out: 'Made the queue mail.\n' });
  const probed = await expectEventually(() => runCtl(probe, { env }));
  expect(probed.out).toMatch(/^delivered +yes\nstatus +204\n/);
  const submitted = await runCtl(submit, { env });
  expect(submitted.out).toContain('SUCCEEDED after 1 attempt');
  expect(submitted.code).toBe(0);
  expect(handlerSaid).toBe('a letter to ada\n');
  const stranger = await runCtl(submit.with(3, 'mail.receive'), { env });
  expect(stranger.out).toContain('(PERMANENT): NO_SUCH_HANDLER 404');
  expect(stranger.code).toBe(1);
});

/** A handler that was just started may not listen yet. */
async function expectEventually(work: () => ReturnType<typeof runCtl>) {
  for (let tries = 0; ; tries++) {
    const ended = await work();
    if (ended.code === 0 || tries === 20) return ended;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

test('long work is settled as the guide says', async () => {
  writeFileSync('settle.mjs', fences('Long work', 'js')[0] ?? '');
  const { settle } = await import(pathToFileURL(join(folder, 'settle.mjs')).href);
  const port = await freePort();
  const tokenLine = ['queue', 'token', 'new', '--principal', 'w', '--grant', 'mail.long:submitter'];
  const made = await runCtl([...tokenLine, '--json'], { env });
  // Not in the server's file: the owner's token will do, and this one must not.
  const stranger: string = JSON.parse(made.out).token;
  const tasks: { id: string; leaseToken: string }[] = [];
  const worker = createServer((request, response) => {
    const { 'x-queue-task-id': id, 'x-queue-lease-token': leaseToken } = request.headers;
    tasks.push({ id: String(id), leaseToken: String(leaseToken) });
    response.writeHead(202, { 'x-queue-async': 'true' }).end();
  }).listen(port, '127.0.0.1');
  await once(worker, 'listening');
  try {
    const yaml = readFileSync('queue.yaml', 'utf8').replace(/port: \d+/, 'port: "*"');
    writeFileSync('queue.yaml', yaml);
    stopServer();
    await serving;
    env['MILLRACE_QUEUE_URL'] = await serve(['queue', 'serve', '--config', 'queue.yaml']);
    const [url, token] = [env['MILLRACE_QUEUE_URL'], env['MILLRACE_QUEUE_TOKEN']];
    const input = `callback: {url: "http://127.0.0.1:${port}/"}`;
    await runCtl(['queue', 'config', 'set', 'mail.long', '-'], { env, input });
    const waiting = runCtl(['queue', 'submit', 'mail.long', 'report', '--wait'], { env });
    await expect.poll(() => tasks.length, { timeout: 20_000 }).toBe(1);
    const [task] = tasks;
    await expect(settle(url, stranger, task, 'complete')).rejects.toThrow('answered 401');
    const lost = settle(url, token, { ...task, leaseToken: 'other' }, 'complete');
    await expect(lost).rejects.toThrow('The lease is lost');
    await settle(url, token, task, 'extend', { extend_ms: 600_000 });
    expect((await settle(url, token, task, 'complete')).status).toBe('SUCCEEDED');
    expect((await settle(url, token, task, 'complete')).status).toBe('SUCCEEDED');
    expect((await waiting).out).toContain('SUCCEEDED after 1 attempt');
  } finally {
    worker.closeAllConnections();
    worker.close();
  }
});
