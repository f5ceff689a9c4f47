import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { CommandShape } from '../src/base/shape.js';
import { faultsOf, QueueServer, runCtl, tokens } from './queue-server.js';

const server = new QueueServer();
beforeAll(async () => {
  await server.start();
  await server.makeQueue('mail');
});
afterAll(() => server.remove());

describe('submit', () => {
  test('stores a task, and --wait tells its end', async () => {
    const plain = await server.ctl(['submit', 'mail', 'greet', '--payload', 'hello']);
    expect([plain.code, plain.err]).toEqual([0, '']);
    expect(plain.out).toMatch(/^Submitted [0-9A-Z]{26} to mail\.\n$/);
    const waited = await server.ctl(['submit', 'mail', 'flaky', '--wait']);
    expect(waited.code).toBe(0);
    expect(waited.out).toMatch(/^\w{26} SUCCEEDED after 2 attempts in .+\.\n$/);
    const dead = await server.ctl(['submit', 'mail', 'break.paper', '--wait']);
    expect([dead.code, dead.err]).toEqual([1, '']);
    expect(dead.out).toMatch(
      /^\w{26} DEAD after 2 attempts in .+ \(ATTEMPTS_EXHAUSTED\): HTTP_5XX 500: .+\n$/,
    );
    const json = await server.ctl(['submit', 'mail', 'refuse', '--wait', '--json']);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({ status: 'DEAD', dead_reason: 'PERMANENT' });
    expect(faultsOf('Task', JSON.parse(json.out))).toEqual([]);
  });

  test('carries everything that its flags say to the handler', async () => {
    const file = server.write('letter.bin', 'Zoë');
    const task = await server.json([
      'submit',
      'mail',
      'letter',
      '--file',
      file,
      '--content-type',
      'text/plain',
      '--header',
      'X-Tenant: acme',
      '--header',
      'X-Empty:',
      '--priority',
      '7',
      '--group',
      'acme',
      '--expires-at',
      '1h',
      '--at',
      '2020-01-01T00:00:00Z',
      '--wait',
    ]);
    expect(task).toMatchObject({
      status: 'SUCCEEDED',
      priority: 7,
      group_key: 'acme',
      headers: { 'X-Tenant': 'acme', 'X-Empty': '' },
    });
    const got = server.received.at(-1)!;
    expect(got.body.toString()).toBe('Zoë');
    expect(got.headers).toMatchObject({ 'content-type': 'text/plain', 'x-tenant': 'acme' });
    const bytes = Buffer.from([0, 255, 128, 10]);
    const piped = await server.json(['submit', 'mail', 'bytes', '-', '--wait'], { input: bytes });
    expect(Buffer.from(piped.payload, 'base64')).toEqual(bytes);
    expect(server.received.at(-1)!.body).toEqual(bytes);
    const late = await server.ctl(['submit', 'mail', 'late', '--delay', '2h']);
    expect(late.out).toMatch(/; it is due in (2h|1h 60m)\.\n$/);
  });

  test('the same id again stores nothing new', async () => {
    const args = ['submit', 'mail', 'greet', '--id', '01ARZ3NDEKTSV4RRFFQ69G5FAV'];
    expect(await server.ok([...args, '--wait'])).toContain('SUCCEEDED');
    const again = await server.ctl(args);
    expect(again).toMatchObject({
      code: 0,
      out: '01ARZ3NDEKTSV4RRFFQ69G5FAV was submitted before and is SUCCEEDED; nothing new was stored.\n',
    });
    const envelope = await server.json(args);
    expect(faultsOf('Envelope', envelope)).toEqual([]);
    await server.makeQueue('mail.other');
    const other = await server.ctl([...args.with(1, 'mail.other'), '--json']);
    expect([other.code, other.out]).toEqual([1, '']);
    expect(JSON.parse(other.err).error.code).toBe('ID_CONFLICT');
    const [id = ''] = await server.bury('mail', ['refuse']);
    await server.ok(['purge', 'mail', id]);
    expect(await server.ok(['submit', 'mail', 'greet', '--id', id])).toMatch(
      /^\w{26} was submitted before, ended DEAD and was deleted; .* nothing runs\.\n$/,
    );
  });

  test('--wait gives up after --timeout and says why the task waits', async () => {
    const args = ['submit', 'mail', 'late', '--delay', '1h', '--wait', '--timeout', '100ms'];
    const { code, err } = await server.ctl(args);
    expect(code).toBe(1);
    expect(err).toMatch(/^ctl: \w{26} is still PENDING: it is not due yet\. Check it with/);
  });

  test('--batch submits every line and shows which were refused', async () => {
    const lines = [
      '{"handler_ref":"greet","payload":"aGVsbG8="}',
      '',
      '{"handler_ref":"greet","priorty":1}',
      'oops',
      '[1]',
      '{"handler_ref":"greet","id":"01ARZ3NDEKTSV4RRFFQ69G5FAW"}',
    ].join('\n');
    const file = server.write('tasks.jsonl', lines);
    const plain = await server.ctl(['submit', 'mail', '--batch', file], { columns: 80 });
    expect(plain.code).toBe(1);
    expect(plain.out).toBe(
      `
Submitted 2 tasks to mail; 3 rejected.

LINE  CODE          REASON
   3  INVALID_TASK  /priorty is not a known field; did you mean "priority"?
   4  INVALID_TASK  The line is not JSON: Unexpected token 'o'.
   5  INVALID_TASK  A line must be a JSON object such as {"handler_ref":"x"}.
`.slice(1),
    );
    const json = await server.ctl(['submit', 'mail', '--batch', '-', '--json'], { input: lines });
    expect(json.code).toBe(1);
    const report = JSON.parse(json.out);
    expect(report).toMatchObject({ accepted: 2, refused: 3 });
    expect(report.results.map(({ line, status }: any) => [line, status])).toEqual([
      [1, 202],
      [3, 422],
      [4, 422],
      [5, 422],
      [6, 202],
    ]);
    const many = Array.from({ length: 2300 }, () => '{"handler_ref":"greet"}').join('\n');
    expect(await server.ok(['submit', 'mail', '--batch', '-'], { input: many })).toBe(
      'Submitted 2300 tasks to mail; 0 rejected.\n',
    );
  });

  test('what is sent again when its answer is lost has the ids it had', async () => {
    const bodies: any[] = [];
    const forgetful = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        bodies.push(JSON.parse(body));
        if (bodies.length % 2 === 1) return void request.socket.resetAndDestroy();
        const items = [bodies.at(-1)].flat();
        const results = items.map((envelope, index) => ({ index, status: 202, envelope }));
        response.end(JSON.stringify(Array.isArray(bodies.at(-1)) ? results : items[0]));
      });
    }).listen(0, '127.0.0.1');
    await once(forgetful, 'listening');
    onTestFinished(() => void forgetful.close());
    const url = ['--url', `http://127.0.0.1:${(forgetful.address() as AddressInfo).port}`];
    const input = '{"handler_ref":"a"}\n{"handler_ref":"b"}\n';
    await server.ok(['submit', 'mail', '--batch', '-', ...url], { input });
    await server.ok(['submit', 'mail', 'c', ...url]);
    expect(bodies).toHaveLength(4);
    expect(bodies[1]).toEqual(bodies[0]);
    expect(bodies[3]).toEqual(bodies[2]);
    const ids = [...bodies[0], bodies[2]].map(({ id }) => id);
    for (const id of ids) expect(id).toMatch(/^[0-9A-Z]{26}$/);
    expect(new Set(ids).size).toBe(3);
  });

  test('a batch waits for a queue that limits its submit rate', async () => {
    await server.makeQueue('mail.slow', { limits: { submit_per_second: 20 } });
    const lines = Array.from({ length: 30 }, () => '{"handler_ref":"greet"}').join('\n');
    expect(
      await server.json(['submit', 'mail.slow', '--batch', '-'], { input: lines }),
    ).toMatchObject({ accepted: 30, refused: 0 });
  });

  test('bad input is reported in one line, with exit code 2', async () => {
    const cases: [string[], string][] = [
      [['submit', 'mail'], 'Name the handler after the queue'],
      [['submit', 'mail', 'x', 'y'], '"y" is not understood. Give a payload as --payload TEXT'],
      [['submit', 'mail', 'x', '-', '--payload', 'a'], 'Give one payload'],
      [['submit', 'mail', 'x', '--delay', '1h', '--at', '2h'], 'Give --delay or --at, not both.'],
      [['submit', 'mail', 'x', '--delay', '5'], '--delay must be a duration such as'],
      [['submit', 'mail', 'x', '--expires-at', '2020-01-01T00:00:00Z'], '--expires-at must be in'],
      [['submit', 'mail', 'x', '--priority', 'high'], '--priority must be a whole number'],
      [['submit', 'mail', 'x', '--header', 'nope'], '--header must be "Name: value"'],
      [['submit', 'mail', 'x', '--timeout', '1s'], '--timeout needs --wait.'],
      [['submit', 'mail', 'x', '--batch', 'f'], '"x" cannot be combined with --batch'],
      [['submit', 'mail', '--batch', 'f', '--wait'], '--wait cannot be combined with --batch'],
      [['submit'], "missing required argument 'queue'"],
      [['sumbit', 'mail'], "unknown command 'sumbit'. Did you mean submit?"],
      [['redrive', 'mail'], 'Select dead tasks'],
      [['redrive', 'mail', 'abc'], '"abc" is not a task id'],
      [['purge', 'mail', '--all', '--http-status', '404'], '--all selects every dead task'],
      [['purge', 'mail', '01ARZ3NDEKTSV4RRFFQ69G5FAV', '--all'], 'Select tasks by id or'],
      [['redrive', 'mail', '--http-status', '99'], '--http-status must be 100 to 599, not 99.'],
      [['redrive', 'mail', '--all', '--rate', 'fast'], '--rate must be a whole number'],
      [['redrive', 'mail', '--from', 'noon'], '--from must be a duration such as'],
      [['watch', '--interval', '1ms'], '--interval must be at least 100ms.'],
      [['watch', '--metrics-url', 'x'], '--metrics-url must be a URL such as'],
      [['list', '--url', 'ftp://x'], '--url must be a URL such as http://127.0.0.1:8081'],
      [
        ['submit', 'mail', 'x', '--payload', '{to:ada}', '--content-type', 'application/json'],
        `Put single quotes around it, as in '{"name":"Ada"}'.`,
      ],
      [['audit', 'verify', '--url', 'http://x', '--data', 'y'], 'Give --url or --data, not both.'],
      [['token', 'new', '--principal', 'x', '--grant', 'mail'], '--grant must be queues:role'],
      [['token', 'new', '--principal', 'x', '--grant', 'mail:owner'], 'roles are submitter,'],
      [['token', 'list'], 'Name the tokens file'],
    ];
    for (const [args, message] of cases) {
      const ended = await server.ctl(args);
      expect([ended.code, ended.out], args.join(' ')).toEqual([2, '']);
      expect(ended.err.split('\n')[0]).toContain(message);
    }
  });
});

describe('what the server refuses', () => {
  test('is exit code 1, with its code under --json', async () => {
    const cases: [string[], string][] = [
      [['get', '01ARZ3NDEKTSV4RRFFQ69G5FZZ'], 'TASK_NOT_FOUND'],
      [['get', 'nonsense'], 'TASK_NOT_FOUND'],
      [['submit', 'mail', 'no good'], 'INVALID_TASK'],
      [['submit', 'nowhere', 'x'], 'QUEUE_NOT_FOUND'],
      [['stats', '../etc'], 'QUEUE_NOT_FOUND'],
      [['dlq', 'list', 'mail', '--cursor', 'x'], 'STALE_CURSOR'],
      [['config', 'get', 'nowhere'], 'QUEUE_NOT_FOUND'],
      [['submit', 'mail', '--batch', '/tmp'], 'EISDIR'],
      [['list', '--token-file', '/no/such'], 'FILE_NOT_FOUND'],
      [['audit', 'verify', '--data', '/no/such'], 'NO_QUEUE'],
    ];
    for (const [args, code] of cases) {
      const ended = await server.ctl([...args, '--json']);
      expect([ended.code, ended.out], args.join(' ')).toEqual([1, '']);
      expect(JSON.parse(ended.err).error.code).toBe(code);
    }
  });

  test('a queue that is almost the right one is named to an admin, and to nobody else', async () => {
    const { code, err } = await server.ctl(['stats', 'mial']);
    expect([code, err.endsWith(' Did you mean mail?\n')]).toEqual([1, true]);
    const env = { MILLRACE_QUEUE_TOKEN: tokens.submitter };
    const other = await server.ctl(['stats', 'mail.x'], { env });
    expect(other.err).not.toContain('Did you mean');
  });

  test('a token that is missing, wrong or too weak is reported with what to do', async () => {
    const none = await server.ctl(['list'], { env: { MILLRACE_QUEUE_TOKEN: '' } });
    expect(none.code).toBe(1);
    expect(none.err).toContain('requires a token. Set MILLRACE_QUEUE_TOKEN');
    const wrong = await server.ctl(['list'], { env: { MILLRACE_QUEUE_TOKEN: 'mr_wrong' } });
    expect(wrong.code).toBe(1);
    expect(wrong.err).toContain('Create a token with `ctl queue token new`');
    expect(wrong.err).not.toContain('mr_wrong');
    const weak = await server.ctl(['pause', 'mail', '--json'], {
      env: { MILLRACE_QUEUE_TOKEN: tokens.submitter },
    });
    expect([weak.code, JSON.parse(weak.err).error.code]).toEqual([1, 'FORBIDDEN']);
    const file = server.write('root.token', `${tokens.root}\n`);
    const env = { MILLRACE_QUEUE_TOKEN: 'mr_wrong' };
    expect((await server.ctl(['list', '--token-file', file], { env })).code).toBe(0);
    const twoLines = server.write('two.token', 'a\nb\n');
    const bad = await server.ctl(['list', '--token-file', twoLines]);
    expect([bad.code, bad.err.includes('must contain one bearer token')]).toEqual([2, true]);
  });

  test('a server that is not there is reported with how to start it', async () => {
    const { code, out, err } = await server.ctl(['list', '--url', 'http://127.0.0.1:1']);
    expect([code, out]).toEqual([1, '']);
    expect(err).toBe(
      'ctl: no queue server answers at http://127.0.0.1:1 (nothing listens there). ' +
        'Start one with `ctl queue serve` or `ctl up`, or name another with --url.\n',
    );
    const submit = await server.ctl(['submit', 'mail', 'x', '--url', 'http://127.0.0.1:1']);
    expect(submit.err).toMatch(/Repeat it safely with --id [0-9A-Z]{26}\.\n$/);
    const stranger = await server.ctl(['list', '--url', server.handlerUrl]);
    expect(stranger).toMatchObject({ code: 1, out: '' });
    expect(stranger.err).toContain('is not a Millrace queue');
  });
});

test('every command of the group explains itself, in 80 columns', async () => {
  const { code, out } = await runCtl(['queue', '--help', '--json']);
  expect(code).toBe(0);
  const group = JSON.parse(out) as CommandShape;
  expect(group.commands.map(({ name }) => name).join(' ')).toBe(
    'serve token secret create config test submit get tasks tree signal cancel update run-now list stats watch top dlq ' +
      'redrive purge job schedule pause resume work workers delete audit backup ' +
      'restore verify migrate',
  );
  const walk = (shape: CommandShape): CommandShape[] => [shape, ...shape.commands.flatMap(walk)];
  for (const { path } of walk(group)) {
    const help = await runCtl([...path.split(' ').slice(1), '--help'], { columns: 80 });
    expect(help.out, path).toMatch(/\nExamples:\n {2}ctl queue /);
    expect(help.out, path).toMatch(/\nExit codes:\n {2}0 .+\n {2}1 .+\n {2}2 .*usage error\n$/);
    const longest = Math.max(...help.out.split('\n').map((line) => line.length));
    expect(longest, path).toBeLessThanOrEqual(80);
  }
});
