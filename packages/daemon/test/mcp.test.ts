import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { runMcpStdio, type ApiRequest } from '@millrace/daemon/mcp';
import { Refusal } from '@millrace/kit/errors';
import { memoryLog } from '@millrace/kit/log';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expectSchema } from './support/client.js';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';

const token = 'the-token-of-these-tests';
const readOnlyToken = 'the-reading-token-of-these';

let daemon: TestDaemon;
const clients: Client[] = [];

beforeEach(async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-mcp-'));
  const clis = new FakeClis(join(home, 'bin'));
  clis.addEmpty('claude', 'gemini');
  daemon = await startDaemon({
    home,
    path: clis.path,
    flags: { token, 'read-only-token': readOnlyToken },
  });
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await daemon.dispose();
});

async function connect(transport: unknown): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport as Transport);
  clients.push(client);
  return client;
}

const overHttp = (bearer = token) =>
  connect(
    new StreamableHTTPClientTransport(new URL(`${daemon.url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${bearer}` } },
    }),
  );

/** `ctl mcp` without its process: the client writes to its stdin and reads its stdout. */
async function overStdio(bearer = token): Promise<Client> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const running = runMcpStdio({
    version: '1.2.3',
    log: memoryLog(),
    input,
    output,
    callApi: (request) => callDaemon(bearer, request),
  });
  const client = await connect(pipeTransport(output, input));
  const close = client.close.bind(client);
  client.close = async () => {
    await close();
    input.end();
    await running;
  };
  return client;
}

async function callDaemon(bearer: string, { method, path, body }: ApiRequest) {
  const { status, json } = await daemon.api.send({
    method,
    path,
    headers: { authorization: `Bearer ${bearer}` },
    ...(body && { body }),
  });
  return { status, body: json as unknown };
}

function pipeTransport(from: PassThrough, to: PassThrough): Transport {
  const buffer = new ReadBuffer();
  const transport: Transport = {
    start: async () => {
      from.on('data', (chunk: Buffer) => {
        buffer.append(chunk);
        for (let next = buffer.readMessage(); next; next = buffer.readMessage()) {
          transport.onmessage?.(next);
        }
      });
    },
    send: async (message: JSONRPCMessage) => void to.write(serializeMessage(message)),
    close: async () => transport.onclose?.(),
  };
  return transport;
}

/** An agent that is done at once; its session stays. */
async function spawnAgent(): Promise<string> {
  const body = { prompt: 'say hi', backend: 'claude', driver: 'headless', cwd: daemon.home };
  const headers = { authorization: `Bearer ${token}` };
  const reply = await daemon.api.send({ method: 'POST', path: '/api/v1/spawn', headers, body });
  expect([reply.status, reply.text]).toEqual([201, reply.text]);
  return reply.json.id as string;
}

const call = (client: Client, name: string, args: Record<string, unknown> = {}) =>
  client.callTool({ name, arguments: args }) as Promise<any>;

describe('the tools over HTTP', () => testTools(overHttp));
describe('the tools over stdio', { tags: 'campaign-transport' }, () => testTools(overStdio));

function testTools(open: typeof overHttp): void {
  test('show at once what was changed by REST, and the other way round', async () => {
    const client = await open();
    const overRest = daemon.api.withHeaders({ authorization: `Bearer ${token}` });
    const byTool = async () => (await call(client, 'list_backends')).structuredContent;
    expect(await byTool()).toEqual(await overRest.registry());
    for (const tier of ['free', 'subscription', 'pay_per_use']) {
      await overRest.ok('PATCH', '/api/v1/backends/claude', { tier, enabled: tier === 'free' });
      const shown = await byTool();
      expect(shown.backends.find(({ id }: { id: string }) => id === 'claude')).toMatchObject({
        tier,
        enabled: tier === 'free',
      });
      expect(await overRest.registry()).toEqual(shown);
      await call(client, 'set_backend_tier', { id: 'gemini', tier });
      expect((await overRest.row('gemini')).tier).toBe(tier);
    }
    await call(client, 'set_default_backend', { id: 'gemini' });
    expect((await overRest.row('gemini')).default).toBe(true);
  });

  test('are listed with annotations and schemas', async () => {
    const { tools } = await (await open()).listTools();
    expect(tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint])).toEqual([
      ['list_backends', true],
      ['rescan_backends', false],
      ['set_backend_tier', false],
      ['set_default_backend', false],
      ['set_thinking_mode', false],
      ['set_force_compact', false],
      ['get_branch_status', true],
      ['savings', true],
      ['spend', true],
      ['answer_question', false],
      ['spawn_agent', false],
      ['list_agents', true],
      ['read_agent', true],
      ['send_to_agent', false],
      ['wait_for_agent', true],
      ['stop_agent', false],
      ['ask_person', false],
      ['create_plan', false],
      ['submit_task', false],
      ['list_ready_tasks', true],
      ['claim_task', false],
      ['complete_task', false],
    ]);
    for (const { description, inputSchema, outputSchema } of tools) {
      expect(description).toMatch(/\.$/);
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
      expect(outputSchema).toMatchObject({ type: 'object' });
      expect(JSON.stringify([inputSchema, outputSchema])).not.toMatch(/\$ref|"x-/);
    }
    expect(tools[2]!.inputSchema).toMatchObject({
      required: ['id', 'tier'],
      properties: { tier: { enum: ['free', 'subscription', 'pay_per_use', 'unclassified'] } },
    });
  });

  test('answer with structured content that fits the contract', async () => {
    const client = await open();
    // Listing first lets the client hold every answer against its output schema.
    await client.listTools();
    const listed = await call(client, 'list_backends');
    expectSchema('Registry', listed.structuredContent);
    expect(JSON.parse(listed.content[0].text)).toEqual(listed.structuredContent);

    const rescanned = await call(client, 'rescan_backends');
    expectSchema('Registry', rescanned.structuredContent);

    const tiered = await call(client, 'set_backend_tier', { id: 'claude', tier: 'free' });
    expectSchema('BackendRow', tiered.structuredContent);
    expect(tiered.structuredContent).toMatchObject({ id: 'claude', tier: 'free' });

    const chosen = await call(client, 'set_default_backend', { id: 'gemini' });
    expectSchema('Registry', chosen.structuredContent);

    const saved = await call(client, 'savings', { since: '24h', bucket: 'hour', samples: true });
    expectSchema('SavingsReport', saved.structuredContent);
    expect(saved.structuredContent).toMatchObject({ events: 0, bucket_granularity: 'hour' });
    expect(saved.structuredContent.samples).toEqual([]);
    expect((await call(client, 'savings')).structuredContent).not.toHaveProperty('buckets');
    expect(await call(client, 'savings', { since: 'soon' })).toMatchObject({ isError: true });

    const mode = await call(client, 'set_thinking_mode', { mode: 'local_only' });
    expect(mode.structuredContent).toEqual({
      internal_thinking_mode: 'local_only',
      allow_paid_autopilot: false,
    });

    const mine = daemon.api.withHeaders({ authorization: `Bearer ${token}` });
    const id = await spawnAgent();
    for (const [state, effective] of [
      ['on', true],
      ['off', false],
      ['inherit', false],
    ] as const) {
      const forced = await call(client, 'set_force_compact', { id, state });
      expectSchema('ForceCompactState', forced.structuredContent);
      expect(forced.structuredContent).toEqual({ id, state, effective });
      expect((await mine.ok('GET', `/api/v1/sessions/${id}`)).force_compact).toBe(state);
    }
    const { name } = await mine.ok('GET', `/api/v1/sessions/${id}`);
    const byName = await call(client, 'set_force_compact', { id: name, state: 'inherit' });
    expect(byName.structuredContent).toMatchObject({ id });

    const standings = await call(client, 'get_branch_status');
    expectSchema('BranchStandings', standings.structuredContent);
    expect(standings.structuredContent).toEqual(await mine.ok('GET', '/api/v1/collab/branches'));

    expect(await mine.row('claude')).toMatchObject({ tier: 'free', default: false });
    expect(await mine.row('gemini')).toMatchObject({ default: true });
    expect((await mine.registry()).settings.internal_thinking_mode).toBe('local_only');
  });

  test('refuse in words, as results that the model can read', async () => {
    const client = await open();
    for (const [name, args, text] of [
      ['set_default_backend', { id: 'codex' }, /^BACKEND_NOT_ELIGIBLE: .*not installed/],
      ['set_default_backend', { id: 'gemni' }, /^BACKEND_NOT_FOUND: .*did you mean gemini/],
      ['set_backend_tier', { id: 'local', tier: 'free' }, /^INVALID_REQUEST: /],
      ['set_backend_tier', { id: 'claude', tier: 'local' }, /^INVALID_REQUEST: \/tier /],
      ['set_backend_tier', { id: 'claude' }, /^INVALID_REQUEST: .*tier/],
      ['set_backend_tier', { id: '../x', tier: 'free' }, /^INVALID_REQUEST: \/id /],
      ['set_thinking_mode', { mode: 'paid' }, /^INVALID_REQUEST: /],
      ['set_force_compact', { id: 'nobody', state: 'on' }, /^SESSION_NOT_FOUND: /],
      ['set_force_compact', { id: 'nobody', state: true }, /^INVALID_REQUEST: \/state /],
      ['set_force_compact', { id: '', state: 'on' }, /^INVALID_REQUEST: \/id /],
      ['get_branch_status', { refresh: true }, /^INVALID_REQUEST: .*refresh/],
      ['list_backends', { more: 1 }, /^INVALID_REQUEST: .*more/],
      // Rules of the contract that the arguments do not show.
      ['spawn_agent', { prompt: 'x', model: '--yolo' }, /^INVALID_REQUEST: \/model must match/],
      [
        'spawn_agent',
        { prompt: 'x', name: 'a\nb' },
        /^INVALID_REQUEST: \/name must be a line of text/,
      ],
      ['create_plan', { title: '\t', tasks: [{ key: 'a' }] }, /^INVALID_REQUEST: \/title /],
      ['ask_person', { options: ['a'] }, /^INVALID_REQUEST: \/title is required/],
      ['ask_person', { title: 'x', session_id: 'nobody' }, /^SESSION_NOT_FOUND: /],
    ] as const) {
      const result = await call(client, name, args);
      expect([name, result.isError]).toEqual([name, true]);
      expect(result.content[0].text).toMatch(text);
      expect(result.structuredContent).toBe(undefined);
    }
    await expect(call(client, 'spawn')).rejects.toThrow('There is no tool "spawn"');
  });

  test('that change something are refused to a read-only token', async () => {
    const client = await open(readOnlyToken);
    expect((await call(client, 'list_backends')).isError).toBe(undefined);
    expect((await call(client, 'get_branch_status')).isError).toBe(undefined);
    for (const [name, args] of [
      ['rescan_backends', {}],
      ['set_backend_tier', { id: 'claude', tier: 'free' }],
      ['set_default_backend', { id: 'claude' }],
      ['set_thinking_mode', { mode: 'local_only' }],
      ['set_force_compact', { id: 'nobody', state: 'on' }],
    ] as const) {
      const result = await call(client, name, args);
      expect([name, result.isError]).toEqual([name, true]);
      expect(result.content[0].text).toMatch(/^FORBIDDEN: /);
    }
    const mine = daemon.api.withHeaders({ authorization: `Bearer ${token}` });
    expect(await mine.row('claude')).toMatchObject({ tier: 'unclassified', default: false });
  });
}

test('over HTTP a read-only caller is refused before its arguments are checked', async () => {
  const client = await overHttp(readOnlyToken);
  for (const args of [{}, { nope: 1 }]) {
    const result = await call(client, 'set_backend_tier', args);
    expect(result.content[0].text).toMatch(/^FORBIDDEN: /);
  }
});

test('without a token there are no tools, and a page of another site gets none', async () => {
  await expect(overHttp('wrong')).rejects.toThrow();
  const request = {
    method: 'POST',
    path: '/mcp',
    headers: { authorization: `Bearer ${token}`, origin: 'https://evil.example' },
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  };
  await daemon.api.refused(request, 403, 'FORBIDDEN');
});

test('a notification is accepted without an answer, and there is no stream to open', async () => {
  const headers = {
    authorization: `Bearer ${token}`,
    accept: 'application/json, text/event-stream',
  };
  const body = { jsonrpc: '2.0', method: 'notifications/initialized' };
  const accepted = await daemon.api.send({ method: 'POST', path: '/mcp', headers, body });
  expect([accepted.status, accepted.text]).toEqual([202, '']);
  await daemon.api.refused({ path: '/mcp', headers }, 405, 'METHOD_NOT_ALLOWED');
  await daemon.api.refused({ method: 'DELETE', path: '/mcp', headers }, 405, 'METHOD_NOT_ALLOWED');
  const old = { ...headers, 'mcp-protocol-version': '1999-01-01' };
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const refused = await daemon.api.send({ method: 'POST', path: '/mcp', headers: old, body: list });
  expect([refused.status, refused.json.error.message]).toEqual([
    400,
    expect.stringContaining('Unsupported protocol version') as string,
  ]);
});

test('a call without a tool or with other arguments than an object says what it needs', async () => {
  const headers = {
    authorization: `Bearer ${token}`,
    accept: 'application/json, text/event-stream',
  };
  for (const params of [undefined, {}, { name: 'list_backends', arguments: null }]) {
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', ...(params && { params }) };
    const { status, json } = await daemon.api.send({ method: 'POST', path: '/mcp', headers, body });
    expect([status, json.error.code]).toEqual([200, -32_602]);
    expect(json.error.message).toContain('the name of a tool');
  }
});

test('a client that sends everything and closes still gets its answers over stdio', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const received: Buffer[] = [];
  output.on('data', (chunk: Buffer) => received.push(chunk));
  const message = (id: number, method: string, params: object) =>
    input.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  const running = runMcpStdio({
    version: '1',
    log: memoryLog(),
    input,
    output,
    callApi: (request) => callDaemon(token, request),
  });
  message(1, 'initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'x', version: '1' },
  });
  message(2, 'tools/call', { name: 'list_backends', arguments: {} });
  input.end();
  await running;
  const answers = Buffer.concat(received).toString().trim().split('\n');
  expect(answers.map((line) => (JSON.parse(line) as { id: number }).id)).toEqual([1, 2]);
});

test('mcp over stdio: an unreachable daemon is reported, and the client may retry', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let isUp = false;
  const running = runMcpStdio({
    version: '1',
    log: memoryLog(),
    input,
    output,
    callApi: async (request) => {
      if (!isUp) throw new Refusal('UNAVAILABLE', 'The daemon is not running.');
      return callDaemon(token, request);
    },
  });
  const client = await connect(pipeTransport(output, input));
  const result = await call(client, 'list_backends');
  expect([result.isError, result.content[0].text]).toEqual([
    true,
    'UNAVAILABLE: The daemon is not running.',
  ]);
  isUp = true;
  expect((await call(client, 'list_backends')).isError).toBe(undefined);
  input.end();
  await running;
});
