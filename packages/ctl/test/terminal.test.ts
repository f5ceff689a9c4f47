import { spawn, spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openApiDocument } from '@millrace/contract/documents';
import { FakeDaemon } from './fake-daemon.js';
import { CTL, startCtl } from './run-ctl.js';

/* What a hostile task or agent can do to the terminal of whoever looks at it: nothing. */

const id = '01JD3Z8Q4M7X2N5V9RTBKWCH6E';
const osc52 = '\u001B]52;c;aGk=\u0007';
const bidi = '\u061C\u200E\u200F\u202A\u202E\u2066\u2069';
const hostile = `a${osc52}b\u009B2Jc${bidi}d\u001B[2J\n\te`;
const dangerous = new RegExp(
  String.raw`\u001B(?!\[[\d;]*m)|[^\P{Cc}\n\t\u001B]|[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]`,
  'u',
);

let server: FakeDaemon;
beforeAll(async () => {
  server = await FakeDaemon.start();
  const task = {
    ...example('queue', 'TaskPending'),
    id,
    handler_ref: hostile,
    headers: { note: hostile },
    payload: Buffer.from(hostile).toString('base64'),
  };
  server.routes.set(`GET /v1/tasks/${id}`, { body: task });
  const session = { ...example('daemon', 'Session'), id: 's1', name: 'ada' };
  server.routes.set('GET /api/v1/sessions', { body: { sessions: [session] } });
  server.routes.set('GET /api/v1/sessions/s1', { body: session });
  server.routes.set('GET /api/v1/sessions/s1/output', {
    body: { lines: [hostile.replaceAll('\n', '')], next: 1 },
  });
});
afterAll(() => server.stop());

function example(document: 'queue' | 'daemon', name: string): object {
  const { examples } = openApiDocument(document).components as unknown as {
    examples: Record<string, { value: object }>;
  };
  return examples[name]!.value;
}

/** Runs `ctl` on a terminal of its own and answers what the terminal got. */
function onTerminal(args: string): Promise<string> {
  const command = `exec ${process.execPath} ${CTL} ${args} --url ${server.url}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', TERM: 'xterm', ...tokens },
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stdin.end();
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => resolve(out));
  });
}

const tokens = { MILLRACE_TOKEN: 'mr_a_b', MILLRACE_QUEUE_TOKEN: 'mr_a_b' };
const onPty = test.skipIf(spawnSync('script', ['--version']).status !== 0);

onPty.each([
  [`queue get ${id} --payload`, '\\u001b]52;c;aGk=\\u0007'],
  [`queue get ${id}`, 'u202e'],
  [`queue get ${id} --json`, '\\u202e'],
  ['agent logs ada', '\\u001b]52;c;aGk=\\u0007'],
  ['agent logs ada --json', '\\u009b'],
])('%s: escapes control, C1 and bidirectional characters', async (args, shown) => {
  const out = await onTerminal(args);
  expect(out).toContain(shown);
  expect(out.replaceAll('\r\n', '\n')).not.toMatch(dangerous);
});

onPty('queue get --payload --raw: writes the bytes also to a terminal', async () => {
  expect(await onTerminal(`queue get ${id} --payload --raw`)).toContain(osc52);
});

test('queue get --payload: writes the bytes to a pipe', async () => {
  const args = ['queue', 'get', id, '--payload', '--url', server.url];
  expect(await startCtl(args, tokens).ended).toMatchObject({ code: 0, out: hostile });
});

test('queue get --raw: needs --payload', async () => {
  const ended = await startCtl(['queue', 'get', id, '--raw', '--url', server.url], tokens).ended;
  expect(ended).toMatchObject({ code: 2, err: 'ctl: --raw needs --payload.\n' });
});
