import { connect, createServer, type Socket } from 'node:net';
import { createServer as createHttpServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '@millrace/kit/clock';
import { Channel, type CallError } from '@millrace/wire/grpc-client';
import {
  connectQueue,
  decodeMessage,
  defineTasks,
  encodeMessage,
  LeaseLost,
  sessionPath,
  TaskCancelled,
  type ConnectOptions,
  type SessionAnswer,
  type SessionRequest,
  type SessionResponse,
  type Step,
  type TaskTypes,
} from '@millrace/worker';
import { expect, onTestFinished, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { createDelivery } from '../src/delivery/index.js';
import { makeQueue, newEmbeddedStore, startTestServer, tokens } from './support/server.js';

const again = inCampaign('cases');

const tasks = defineTasks<{ a: unknown }>();
const soon = { timeout: 60_000, interval: 10 };

async function serve() {
  const store = await newEmbeddedStore();
  const anyPort = { host: '127.0.0.1', port: 0 };
  const server = await startTestServer({ store, createDelivery, settings: { grpc: anyPort } });
  await makeQueue(server, 'mail', { callback: { protocol: 'pull' } });
  const requests = async (operation: string) => {
    const text = await (await fetch(`${server.metricsUrl}/metrics`)).text();
    const lines = text.split('\n').filter((line) => line.includes(`operation="${operation}"`));
    return lines.filter((line) => line.includes('_count{') || line.includes('_total{')).length;
  };
  return { ...server, requests };
}

function use(options: ConnectOptions, who: keyof typeof tokens = 'root') {
  const queue = connectQueue({ token: tokens[who], ...options }, tasks);
  onTestFinished(() => queue.close());
  return queue;
}

/** A way to the server that can be cut. */
async function wayTo(url: string) {
  const { port } = new URL(url);
  const sockets = new Set<Socket>();
  const proxy = createServer((socket) => {
    const other = connect(Number(port), '127.0.0.1');
    for (const each of [socket, other]) {
      sockets.add(each);
      each.on('error', () => undefined);
      each.on('close', () => (each === socket ? other : socket).destroy());
    }
    socket.pipe(other).pipe(socket);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void proxy.close());
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  onTestFinished(cut);
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, cut };
}

test('session: submits, claims, settles and records steps without a request each', async () => {
  const server = await serve();
  const queue = use({ url: server.url });
  const a = ({ payload, step }: { payload: unknown; step: Step<TaskTypes> }) =>
    step.run('echo', () => payload);
  queue.createWorker({ queue: 'mail' }, { a });
  const many = Array.from({ length: 50 }, (_, i) =>
    queue.submitAndWait('mail', 'a', { i, text: 'ü' }),
  );
  const results = await Promise.all(many);
  expect(results.map(({ result }) => (result as { i: number }).i)).toEqual(
    Array.from({ length: 50 }, (_, i) => i),
  );
  const quiet = ['submitTask', 'submitBatch', 'claimTasks', 'settleTasks', 'recordSteps'];
  for (const operation of quiet) {
    expect([operation, await server.requests(operation)]).toEqual([operation, 0]);
  }
  expect(await server.requests('getTask')).toBeGreaterThan(0);
  expect(server.differences).toEqual([]);
});

test('session: a stream that breaks hands its tasks back at once, and the old worker learns it', async () => {
  const server = await serve();
  const way = await wayTo(server.url);
  const first = use({ url: way.url });
  let reason: unknown;
  const worker = first.createWorker(
    { queue: 'mail', onError: () => undefined },
    {
      a: async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        reason = signal.reason;
      },
    },
  );
  const second = use({ url: server.url });
  const { id } = await second.submit('mail', 'a', 1);
  await expect.poll(() => worker.running, soon).toBe(1);
  // Its handlers go on, but it does not claim the task again itself.
  worker.pause();
  way.cut();
  second.createWorker({ queue: 'mail' }, { a: ({ task }) => task.attempt });
  await expect.poll(async () => (await second.get(id)).status, soon).toBe('SUCCEEDED');
  const task = await second.get(id);
  expect(task.attempts[0]).toMatchObject({ outcome: 'INTERRUPTED', errorType: 'WORKER_GONE' });
  // The lease of 30 s did not have to end.
  const [lost, next] = task.attempts;
  expect(Date.parse(next!.startedAt) - Date.parse(lost!.endedAt)).toBeLessThan(15_000);
  await expect.poll(() => reason, soon).toBeInstanceOf(LeaseLost);
});

test.each([
  ['session', {}, 'root'],
  ['REST', { fetch }, 'root'],
  ['REST, with the role worker alone', { fetch }, 'worker'],
] as const)('%s: a cancel reaches the handler at once', async (_, options, who) => {
  const server = await serve();
  const queue = use({ url: server.url });
  let reason: unknown;
  // The lease is not extended in the time of the test.
  const worker = use({ url: server.url, ...options }, who).createWorker(
    { queue: 'mail', leaseMs: 600_000 },
    {
      a: async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        reason = signal.reason;
      },
    },
  );
  const { id } = await queue.submit('mail', 'a', 1);
  await expect.poll(() => worker.running, soon).toBe(1);
  await queue.cancel(id);
  await expect.poll(() => reason, soon).toBeInstanceOf(TaskCancelled);
});

test('session: a refused step is the error that REST has', async () => {
  const server = await serve();
  const queue = use({ url: server.url });
  const errors: unknown[] = [];
  queue.createWorker(
    { queue: 'mail' },
    {
      a: async ({ step }) => {
        await step.run('large', () => 'x'.repeat(300_000)).catch((error) => errors.push(error));
        return step.run('small', () => 'done');
      },
    },
  );
  const { result } = await queue.submitAndWait('mail', 'a', 1);
  expect(result).toBe('done');
  expect(errors).toMatchObject([{ name: 'PermanentError', cause: { code: 'STEP_TOO_LARGE' } }]);
});

test('session: events go on where they were after a lost connection, without a request', async () => {
  const server = await serve();
  const way = await wayTo(server.url);
  const queue = use({ url: way.url });
  const other = use({ url: server.url });
  const events = queue.events({ queue: 'mail', types: ['submitted'] });
  await events.ready;
  const sent: string[] = [];
  const submit = async () => void sent.push((await other.submit('mail', 'a', 1)).id);
  await submit();
  const seen: string[] = [];
  for await (const { taskId } of events) {
    seen.push(taskId);
    if (seen.length === 1) way.cut();
    if (seen.length === 20) break;
    await submit();
  }
  // They may repeat after a resume, and none is left out.
  expect([...new Set(seen)]).toEqual(sent.slice(0, new Set(seen).size));
  expect(await server.requests('streamEvents')).toBe(0);
  const refused = queue.events({ queue: 'typo' });
  await expect(refused.ready).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND', status: 404 });
  await expect(queue.events({ after: '0.0' }).ready).rejects.toMatchObject({ status: 410 });
});

again('session: a batch of events is sent for each call, and a dropped stream ends', async () => {
  const server = await serve();
  const queue = use({ url: server.url });
  const grpc = new URL(server.running.listeners.find(({ listener }) => listener === 'grpc')!.url);
  const place = { host: '127.0.0.1', port: Number(grpc.port) };
  const channel = new Channel({ place, clock: systemClock, maxMessageBytes: 1_000_000 });
  onTestFinished(() => channel.close());
  const answers: SessionAnswer[] = [];
  const observer = {
    takeMessage: (message: Buffer) =>
      void answers.push(...(decodeMessage<SessionResponse>(message).content.answers ?? [])),
    takeEnd: () => undefined,
  };
  const headers = { authorization: `Bearer ${tokens.root}` };
  const stream = channel.duplex(sessionPath, observer, { headers });
  const say = async (content: SessionRequest, count: number) => {
    stream.send(encodeMessage({ content, payloads: [] }));
    await expect.poll(() => answers.length, soon).toBe(count);
    return answers.at(-1)!;
  };
  const types = ['submitted'] as const;
  expect(await say({ events: [{ call: 1, query: { types } }] }, 1)).toMatchObject({
    body: { events: [], cursor: expect.any(String) as string },
  });
  const first = await queue.submit('mail', 'a', 1);
  expect(await say({ events: [{ call: 2, of: 1 }] }, 2)).toMatchObject({
    body: { events: [{ task_id: first.id }] },
  });
  await queue.submit('mail', 'a', 2);
  // Its answer comes after any event that was sent without credit.
  const unknown = await say({ events: [{ call: 3, query: { queue: 'typo' } }] }, 3);
  expect(unknown).toMatchObject({ call: 3, error: { code: 'QUEUE_NOT_FOUND' } });
  const waiting = {
    events: [
      { call: 4, of: 1 },
      { call: 5, of: 1 },
    ],
    drop: [],
  };
  expect(await say(waiting, 4)).toMatchObject({ call: 4, body: { events: [{}] } });
  expect(await say({ drop: [1] }, 5)).toEqual({ call: 5, body: null });
  expect(await say({ events: [{ call: 6, of: 1 }] }, 6)).toEqual({ call: 6, body: null });
});

again('session: uses the next of several servers when one is away', async () => {
  const [one, two] = [await serve(), await serve()];
  const queue = use({ urls: ['http://127.0.0.1:9', one.url, two.url] });
  const { id } = await queue.submit('mail', 'a', 1);
  expect((await queue.get(id)).status).toBe('PENDING');
  await one.running.stop();
  const other = await queue.submit('mail', 'a', 2);
  expect(await two.store.getTask(other.id)).toMatchObject({ id: other.id });
  expect((await queue.get(other.id)).payload).toBe(2);
});

test('session: falls back to REST where something refuses the upgrade', async () => {
  const server = await serve();
  const target = new URL(server.url);
  const proxy = createHttpServer((request, response) => {
    const { method, url, headers } = request;
    const { upgrade: _, connection: __, ...rest } = headers;
    const sent = httpRequest(
      { host: target.hostname, port: target.port, method, path: url, headers: rest },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      },
    );
    request.pipe(sent);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => proxy.closeAllConnections());
  const queue = use({ url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
  queue.createWorker({ queue: 'mail' }, { a: () => 'done' });
  expect((await queue.submitAndWait('mail', 'a', 1)).result).toBe('done');
  expect(await server.requests('submitTask')).toBeGreaterThan(0);
  proxy.close();
});

test('session: a server that stops lets running tasks be settled elsewhere', async () => {
  const server = await serve();
  const queue = use({ url: server.url });
  let end: (result: string) => void = () => undefined;
  const worker = queue.createWorker(
    { queue: 'mail', onError: () => undefined },
    { a: () => new Promise<string>((resolve) => (end = resolve)) },
  );
  await queue.submit('mail', 'a', 1);
  await expect.poll(() => worker.running, soon).toBe(1);
  const settled: unknown[] = [];
  const { settle } = server.store;
  server.store.settle = async (settlements) => {
    const results = await settle.call(server.store, settlements);
    settled.push(...results.map((result) => result.task?.status));
    return results;
  };
  const stopping = server.running.stop();
  end('done');
  await stopping;
  await worker.stop();
  expect(settled).toEqual(['SUCCEEDED']);
});

test('session: grants hold, and refusals name what is wrong', async () => {
  const server = await serve();
  const submitter = use({ url: server.url }, 'submitter');
  const { id } = await submitter.submit('mail', 'a', 1);
  expect(id).toHaveLength(26);
  await expect(submitter.submit('other', 'a', 1)).rejects.toMatchObject({ code: 'FORBIDDEN' });
  const worker = use({ url: server.url }, 'worker');
  await expect(worker.submit('mail', 'a', 1)).rejects.toMatchObject({ code: 'FORBIDDEN' });
  const nobody = use({ url: server.url, token: 'wrong' });
  await expect(nobody.submit('mail', 'a', 1)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  const admin = use({ url: server.url });
  await expect(admin.submit('mail', 'a', 1, { priority: 99 })).rejects.toThrow('priority must');
  await expect(admin.submit('typo', 'a', 1)).rejects.toMatchObject({ code: 'QUEUE_NOT_FOUND' });
});

test('session: a message that is none ends the stream with INVALID_TASK', async () => {
  const server = await serve();
  const grpc = new URL(server.running.listeners.find(({ listener }) => listener === 'grpc')!.url);
  const ended = (message: Buffer, token: string | undefined) =>
    new Promise<CallError | undefined>((resolve) => {
      const place = { host: '127.0.0.1', port: Number(grpc.port) };
      const channel = new Channel({ place, clock: systemClock, maxMessageBytes: 1_000_000 });
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const observer = {
        takeMessage: () => undefined,
        takeEnd: (error: CallError | undefined) => {
          channel.close();
          resolve(error);
        },
      };
      const head = Buffer.from([0, 0, 0, 0, message.length]);
      channel.duplex(sessionPath, observer, { headers }).send(Buffer.concat([head, message]));
    });
  const bad = [
    '\x0a',
    '\x0a\x7f',
    '\x0a\x02{]',
    '\x0a\x04null',
    '\x08\x01',
    '\x0a\x0d{"submit":[0]}',
    '\x0a\x0e{"submit":"x"}',
  ];
  for (const text of bad) {
    const error = await ended(Buffer.from(text, 'latin1'), tokens.root);
    expect([text, error?.code, error?.message]).toEqual([
      text,
      3,
      expect.stringContaining('not a valid OpenRequest'),
    ]);
  }
  expect((await ended(Buffer.from('\x0a\x02{}'), undefined))?.code).toBe(16);
  expect((await ended(Buffer.from('\x0a\x02{}'), 'wrong'))?.code).toBe(16);
});

test('session: upgrades are refused without a valid token, and a peer that resets harms nobody', async () => {
  const server = await serve();
  const { port } = new URL(server.url);
  const upgrade = (protocol: string, token: string, isReset = false) =>
    new Promise<string>((resolve) => {
      const socket = connect(Number(port), '127.0.0.1');
      let answer = '';
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        answer += String(chunk);
        if (answer.includes('\r\n\r\n')) socket.destroy();
      });
      socket.on('close', () => resolve(answer.split('\r\n')[0]!));
      socket.write(
        `GET /v1/session HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n` +
          `Authorization: Bearer ${token}\r\n\r\n`,
        () => isReset && socket.resetAndDestroy(),
      );
    });
  expect(await upgrade('millrace-session', 'wrong')).toBe('HTTP/1.1 401 Unauthorized');
  expect(await upgrade('websocket', tokens.root)).toBe('HTTP/1.1 400 Bad Request');
  expect(await upgrade('millrace-session', tokens.root)).toBe('HTTP/1.1 101 Switching Protocols');
  const all = ['wrong', tokens.root].flatMap((token) =>
    Array.from({ length: 20 }, () => upgrade('millrace-session', token, true)),
  );
  await Promise.all(all);
  const queue = use({ url: server.url });
  expect((await queue.submit('mail', 'a', 1)).status).toBe('PENDING');
});

again('session: an idle session stays open longer than a peer may stay silent', async () => {
  const server = await serve();
  const queue = use({ url: server.url });
  const worker = queue.createWorker({ queue: 'mail' }, { a: () => 'done' });
  await queue.submitAndWait('mail', 'a', 1);
  const errors: unknown[] = [];
  worker.on('stalled', () => errors.push('stalled'));
  // Strangers are dropped after 5 s.
  await new Promise((resolve) => setTimeout(resolve, 6_500));
  await queue.submitAndWait('mail', 'a', 2);
  expect(errors).toEqual([]);
  expect(await server.requests('claimTasks')).toBe(0);
});
