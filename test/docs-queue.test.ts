import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createListener, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  startPostgres,
  type PostgresServer,
} from '../packages/queue/test/postgres/postgres-server.js';
import { exceptionOf } from './support/exceptions.js';
import { commandsOf, fencesIn, root } from './support/markdown.js';
import { pagesOfQueue, testOptionsOf } from './support/pages.js';
import { Sandbox } from './support/sandbox.js';
import { patient } from './support/up.js';

/*
 * Follows the queue's pages in order: files, handler and commands of the tutorial, the how-to
 * guides, and the move to PostgreSQL. Only ports and generated names differ.
 */

const tutorial = 'docs/tutorials/first-task.md';
const pageTask = '01JD3Z8Q4M7X2N5V9RTBKWCH6E';
let sandbox: Sandbox;
let postgres: PostgresServer;
const names = new Map<string, string>();

beforeAll(async () => {
  [sandbox, postgres] = await Promise.all([Sandbox.make(), startPostgres()]);
  names.set('postgres://queue@db.internal/queue', await postgres.database('queue'));
  const ports = [await freePort(), await freePort()];
  const [queue = '', secrets = '', mail = ''] = fencesIn(tutorial, 'Write the files', 'yaml');
  // The second port is for the handler of long work.
  const entry = queue.split('\n').find((line) => line.includes('port: 9000')) ?? '';
  const second = entry.replace('9000', String(ports[1]));
  write('queue.yaml', `${queue.replace('9000', String(ports[0]))}${second}\n`);
  write('secrets.yaml', secrets);
  write('mail.yaml', mail.replace('9000', String(ports[0])));
  write('impatient.yaml', readWork('mail.yaml').replace(/max_attempts: \d+/, 'max_attempts: 1'));
  write('handler.mjs', fencesIn(tutorial, 'Write the files', 'js')[0] ?? '');
  write('settle.mjs', fencesIn('docs/how-to/write-a-handler.md', 'Long work', 'js')[0] ?? '');
  const [nightly = ''] = fencesIn('docs/how-to/schedule-work.md', 'Create a schedule', 'yaml');
  write('nightly.yaml', nightly);
  write('letter.json', '{"to":"ada"}');
  mkdirSync(join(sandbox.work, 'node_modules'));
  const webhooks = 'node_modules/standardwebhooks';
  symlinkSync(join(root, webhooks), join(sandbox.work, webhooks));
  Object.assign(sandbox.env, {
    MAIL_SIGNING_SECRET: /whsec_\S+/.exec(secrets)?.[0],
    PORT: String(ports[0]),
    LONG_PORT: String(ports[1]),
  });
});
afterAll(async () => {
  await sandbox.end();
  await postgres.remove();
});

function write(name: string, text: string): void {
  writeFileSync(join(sandbox.work, name), text);
}

function readWork(name: string): string {
  return readFileSync(join(sandbox.work, name), 'utf8');
}

async function freePort(): Promise<number> {
  const listener = createListener().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, 'close');
  return port;
}

async function ok(command: string): Promise<string> {
  const { code, out } = await sandbox.runHere(command);
  expect(code, out).toBe(0);
  return out;
}

/** What has to be so before a command means anything. */
const preparations: readonly [RegExp, () => Promise<unknown>][] = [
  [
    / queue test mail$/,
    // The handler of the guide listens a moment after it was started.
    () => vi.waitFor(() => ok('millrace queue test mail'), patient),
  ],
  [/ queue get /, () => submit('mail.send', `--payload null --id ${pageTask}`)],
  [
    / queue watch$/,
    async () => {
      await ok('millrace queue config set mail impatient.yaml');
      await submit('mail.spam', '');
      await vi.waitFor(async () => {
        expect(await dead()).toEqual(
          expect.arrayContaining([
            expect.objectContaining({ id: pageTask }),
            expect.objectContaining({ handler_ref: 'mail.spam' }),
          ]),
        );
      }, patient);
    },
  ],
  [
    / --if-version 3$/,
    async () => {
      const config = JSON.parse(await ok('millrace queue config get mail')) as { version: number };
      names.set('--if-version 3', `--if-version ${config.version}`);
    },
  ],
  [
    / queue delete mail$/,
    () =>
      vi.waitFor(async () => {
        // A task that fails may wait for its next attempt for minutes.
        await ok('millrace queue cancel --queue mail --all --yes');
        await ok('millrace queue purge mail --all --yes');
        const stats = JSON.parse(await ok('millrace queue stats mail --json'));
        expect(stats).toMatchObject({ pending: 0, in_flight: 0, dlq_depth: 0 });
      }, patient),
  ],
  [
    / queue migrate /,
    async () => {
      await ok('millrace queue config set mail mail.yaml');
      await submit('mail.send', '--file letter.json --content-type application/json --wait');
      await sandbox.stop('queue');
    },
  ],
];

function submit(handler: string, flags: string): Promise<string> {
  const type = flags.includes('--content-type') ? '' : '--content-type application/json';
  return ok(`millrace queue submit mail ${handler} ${flags} ${type}`);
}

async function dead(): Promise<unknown[]> {
  return JSON.parse(await ok('millrace queue dlq list mail --json')).tasks;
}

/** What a page could not know is put in the place of what it says. */
function here(command: string): string {
  const instead = exceptionOf(command)?.instead ?? command;
  return Array.from(names).reduce((text, [from, to]) => text.replace(from, to), instead);
}

/** What is to be seen afterwards. */
const promises: readonly [RegExp, RegExp][] = [
  [/ config set mail mail\.yaml$/, /^Created the queue mail\.$/m],
  [/ queue test mail$/, /^delivered +yes\nstatus +204$/m],
  [/ --wait$/, /SUCCEEDED after 1 attempt/],
  [/ --batch tasks\.jsonl$/, /\b1\b/],
  [/ dlq groups mail$/, /HTTP_5XX/],
  [/ dlq list mail /, new RegExp(pageTask)],
  [/ queue redrive /, /\b[1-9]\d*\b/],
  [/ queue purge (?!.* --async)/, /\b[1-9]\d*\b/],
  [/ queue purge .* --async$/, /^Started the job /m],
  [/ queue job list mail$/, / purge +(?:running|done) /m],
  [/ audit verify$/, /^The audit log is intact/m],
  [/ schedule set mail nightly /, /^nightly runs next at \S+:00\.000Z\.$/m],
  [/ schedule list mail$/, /^digest .* in .* mail\.digest$/m],
  [/ schedule run-now /, /^Submitted [0-9A-Z]{26}\.$/m],
  [/ token list /, /payments\.\*/],
  [
    / queue migrate /,
    /^Moved 2 queues, \d+ tasks? and \d+ audit records .* source and target are equal\.$/m,
  ],
];

async function run(command: string): Promise<string> {
  if (command.includes(' queue serve ')) {
    await sandbox.serve('handler', 'node handler.mjs', /^/);
    const out = await sandbox.serve('queue', command, /"metrics"/);
    sandbox.env['MILLRACE_QUEUE_URL'] = /http:\/\/[\d.:]+/.exec(out)?.[0] ?? '';
    return out;
  }
  // A filter is confirmed, ids are not.
  const isRequested =
    / queue (?:redrive|purge) \S+ --/.test(command) && !/ --(?:dry-run|yes)\b/.test(command);
  const typed = [{ after: /\[y\/N\]/i, keys: 'y\r' }];
  const isProcess = isRequested || commandsOf(tutorial).includes(command);
  const { code, out } = isProcess
    ? await sandbox.run(here(command), isRequested ? { typed } : {})
    : await sandbox.runHere(here(command));
  expect(code, out).toBe(0);
  if (command.includes('--principal me')) {
    sandbox.env['MILLRACE_QUEUE_TOKEN'] = /^ {2}(mr_\S+)$/m.exec(out)?.[1] ?? '';
  }
  if (command.includes('--principal shop')) {
    names.set('4tz9mq1w0c8ka', /^The token "(\w+)"/.exec(out)?.[1] ?? '');
  }
  return out;
}

const migrationPage = 'docs/how-to/run-the-queue-on-postgresql.md';

for (const page of pagesOfQueue.filter((each) => each !== migrationPage)) {
  describe(page, testOptionsOf(page), () => test.each(commandsOf(page))('%s', follow));
}

describe('docs/how-to/write-a-handler.md', { tags: 'campaign-docs' }, () => {
  test('long work is settled as the guide says', async () => {
    await ok(`millrace queue config set mail mail.yaml`);
    const tasks: { id: string; leaseToken: string }[] = [];
    const worker = createServer((request, response) => {
      const { 'x-queue-task-id': id, 'x-queue-lease-token': leaseToken } = request.headers;
      tasks.push({ id: String(id), leaseToken: String(leaseToken) });
      response.writeHead(202, { 'x-queue-async': 'true' }).end();
    }).listen(Number(sandbox.env['LONG_PORT']), '127.0.0.1');
    await once(worker, 'listening');
    try {
      write('long.yaml', `callback: { url: "http://127.0.0.1:${sandbox.env['LONG_PORT']}/" }`);
      await ok('millrace queue config set mail.long long.yaml');
      const waiting = ok('millrace queue submit mail.long report --wait');
      await expect.poll(() => tasks.length, patient).toBe(1);
      await settleAsDocumented(tasks[0]!);
      expect(await waiting).toContain('SUCCEEDED after 1 attempt');
    } finally {
      worker.closeAllConnections();
      worker.close();
    }
  });
});

// Last: it stops the server of the pages before.
describe(migrationPage, testOptionsOf(migrationPage), () => {
  test.each(commandsOf(migrationPage))('%s', follow);
});

async function settleAsDocumented(task: { id: string; leaseToken: string }): Promise<void> {
  const { settle } = await import(pathToFileURL(join(sandbox.work, 'settle.mjs')).href);
  const { MILLRACE_QUEUE_URL: url, MILLRACE_QUEUE_TOKEN: token } = sandbox.env;
  await expect(settle(url, 'mr_nobody', task, 'complete')).rejects.toThrow('answered 401');
  const lost = settle(url, token, { ...task, leaseToken: 'other' }, 'complete');
  await expect(lost).rejects.toThrow('The lease is lost');
  await settle(url, token, task, 'extend', { extend_ms: 600_000 });
  expect((await settle(url, token, task, 'complete')).status).toBe('SUCCEEDED');
  expect((await settle(url, token, task, 'complete')).status).toBe('SUCCEEDED');
}

async function follow(command: string): Promise<void> {
  for (const [pattern, prepare] of preparations) if (pattern.test(command)) await prepare();
  const out = await run(command);
  for (const [pattern, promise] of promises) {
    if (pattern.test(command)) expect(out).toMatch(promise);
  }
}
