import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ctlHere as ctl, startCtl } from './run-ctl.js';
import { QueueServer, tokens } from './queue-server.js';

const server = new QueueServer();
beforeAll(() => server.start());
afterAll(() => server.remove());

test('create: makes a pull queue, once', async () => {
  expect(await server.ok(['create', 'letters', '--pull'])).toBe('Created the queue letters.\n');
  const config = await server.json(['config', 'get', 'letters']);
  expect(config.callback.protocol).toBe('pull');
  const again = await server.ctl(['create', 'letters', '--pull']);
  expect([again.code, again.err]).toEqual([1, expect.stringContaining('exists')]);
});

test('create: makes a queue with an allowed callback', async () => {
  await server.ok(['create', 'parcels', '--callback-url', server.handlerUrl]);
  const { callback } = await server.json(['config', 'get', 'parcels']);
  expect(callback.url).toBe(server.handlerUrl);
});

test('create: needs either a URL or --pull', async () => {
  expect((await server.ctl(['create', 'cards'])).code).toBe(2);
  const both = ['create', 'cards', '--pull', '--callback-url', 'http://127.0.0.1:1/'];
  expect((await server.ctl(both)).code).toBe(2);
  expect((await server.ctl(['create', 'cards', '--callback-url', 'nonsense'])).code).toBe(2);
});

test('create: a URL off the allowlist is refused if the config file is not known', async () => {
  const refused = await server.ctl([
    'create',
    'cards',
    '--callback-url',
    'https://example.org/run',
  ]);
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('--config')]);
});

test('create: allows the URL in the config file of a running server, which reloads it', async () => {
  const file = server.write(
    'own.yaml',
    '# Ours\nlisten: 127.0.0.1:0\nmetrics_listen: 127.0.0.1:0\ndata: ./own\n' +
      'tokens_file: tokens.yaml\n',
  );
  const { child, ended, says } = startCtl(['queue', 'serve', '--config', file]);
  let out = '';
  child.stdout!.on('data', (text: string) => (out += text));
  try {
    await says('"listener":"metrics"');
    const url = /"listener":"http","url":"([^"]+)"/.exec(out)?.[1];
    const made = [
      'create',
      'mail',
      '--callback-url',
      'http://127.0.0.1:9000/run',
      '--config',
      file,
    ];
    const env = { MILLRACE_QUEUE_URL: url! };
    // As a process: while it waits for the reload, nothing else keeps it alive.
    const token = { MILLRACE_QUEUE_TOKEN: tokens.root };
    const { code, out: said } = await ctl(['queue', ...made], { ...env, ...token });
    expect([code, said]).toEqual([0, 'Created the queue mail.\n']);
    const calls = ['create', 'calls', '--callback-url', 'grpc://127.0.0.1:50051', '--config', file];
    expect(await server.ok(calls, { env })).toBe('Created the queue calls.\n');
    const text = readFileSync(file, 'utf8');
    expect(text).toMatch(/^# Ours\n/);
    expect((parse(text) as Record<string, unknown>)['callback_allowlist']).toEqual([
      {
        scheme: 'http',
        host: '127.0.0.1',
        port: 9000,
        path_prefix: '/run',
        networks: ['127.0.0.1/32'],
      },
      { scheme: 'grpc', host: '127.0.0.1', port: 50051, networks: ['127.0.0.1/32'] },
    ]);
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
});
