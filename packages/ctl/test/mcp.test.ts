import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DaemonServer } from './daemon-server.js';
import { startCtl, type Started } from './run-ctl.js';

const server = new DaemonServer();
beforeAll(() => server.start());
afterAll(() => server.remove());

/** A client that speaks the protocol's JSON lines. */
class Client {
  readonly started: Started;
  readonly #waiting = new Map<number, (message: any) => void>();
  #last = 0;

  constructor(args: string[]) {
    this.started = startCtl(['mcp', ...args], server.env);
    createInterface({ input: this.started.child.stdout }).on('line', (line) => {
      const message = JSON.parse(line);
      this.#waiting.get(message.id)?.(message);
    });
  }

  send(message: object): void {
    this.started.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  async call(method: string, params: object = {}): Promise<any> {
    const id = ++this.#last;
    const answered = new Promise<any>((resolve) => this.#waiting.set(id, resolve));
    this.send({ id, method, params });
    const { result, error } = await answered;
    if (error) throw new Error(error.message);
    return result;
  }

  async begin(): Promise<void> {
    await this.call('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    });
    this.send({ method: 'notifications/initialized' });
  }

  /** Closes stdin as a client that goes away does. */
  async end() {
    this.started.child.stdin.end();
    return this.started.ended;
  }
}

test('the tools of the daemon are served over stdin and stdout until the client goes', async () => {
  const client = new Client([]);
  await client.begin();
  const { tools } = await client.call('tools/list');
  const names = tools.map(({ name }: { name: string }) => name);
  for (const name of ['list_backends', 'rescan_backends', 'set_backend_tier']) {
    expect(names).toContain(name);
  }
  const set = await client.call('tools/call', {
    name: 'set_backend_tier',
    arguments: { id: 'claude', tier: 'subscription' },
  });
  expect(set.structuredContent).toMatchObject({ id: 'claude', tier: 'subscription' });
  const registry = await server.json(['backend', 'list']);
  expect(registry.backends.find(({ id }: any) => id === 'claude').tier).toBe('subscription');
  expect(await client.end()).toMatchObject({ code: 0, signal: null });
});

test('a daemon that is not there is an error of the tool, not the end of the server', async () => {
  const client = new Client(['--url', 'http://127.0.0.1:1']);
  await client.begin();
  const answer = await client.call('tools/call', { name: 'list_backends', arguments: {} });
  expect(answer.isError).toBe(true);
  expect(JSON.stringify(answer.content)).toContain('no daemon answers at http://127.0.0.1:1');
  expect(await client.call('tools/list')).toHaveProperty('tools');
  expect(await client.end()).toMatchObject({ code: 0 });
});

test('Ctrl-C ends it too', async () => {
  const client = new Client([]);
  await client.begin();
  client.started.child.kill('SIGINT');
  expect(await client.started.ended).toMatchObject({ code: 0, signal: null });
});
