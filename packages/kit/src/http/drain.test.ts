import { EventEmitter } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { listeningLog, sampleHandlers, startSample, token } from '../../test/http/sample-server.js';
import { systemClock } from '../base/clock-and-random.js';
import { drainHttp, serveUntilSignal, type DrainStep, type SignalSource } from './run-server.js';
import { eventStream } from './sse.js';

interface Got {
  status: number;
  connection: string | undefined;
  text: string;
}

function get(url: string, agent: Agent): Promise<Got> {
  return new Promise((resolve, reject) => {
    const onResponse = (response: IncomingMessage) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode!, connection: response.headers.connection, text }),
      );
    };
    httpRequest(url, { agent, headers: token }, onResponse).on('error', reject).end();
  });
}

/** A server whose `getTask` responds on demand and reports that a request has arrived. */
async function startSlow() {
  let arrive = () => {};
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const server = await startSample({
    handlers: {
      ...sampleHandlers(),
      getTask: async () => {
        arrive();
        await released;
        return { status: 200, body: { done: true } };
      },
      watchEvents: ({ signal, ending }) => {
        arrive();
        return {
          status: 200,
          contentType: 'text/event-stream',
          content: eventStream(never(), { clock: systemClock, signals: [signal, ending] }),
        };
      },
    },
  });
  return { server, arrived, release };
}

async function* never(): AsyncGenerator<{ data: string }> {
  await new Promise(() => undefined);
  yield { data: 'unreachable' };
}

describe('a drain', () => {
  test('finishes requests in flight, closes idle connections and accepts nothing new', async () => {
    const { server, arrived, release } = await startSlow();
    const agent = new Agent({ keepAlive: true });
    await get(`${server.url}/healthz`, agent);
    const underWay = get(`${server.url}/v1/tasks/1`, agent);
    await arrived;
    const drained = drainHttp(server.app, { clock: systemClock, deadlineMs: 10_000 });
    await vi.waitFor(() => expect(fetch(`${server.url}/healthz`)).rejects.toThrow(), 60_000);
    release();
    expect(await underWay).toMatchObject({ status: 200, connection: 'close' });
    expect(await drained).toBe(true);
    agent.destroy();
  });

  test.each(['', '\r\n'])(
    'answers a request that was on its way, and ends its connection (%j before it)',
    async (before) => {
      const server = await startSample();
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
      let said = '';
      socket.setEncoding('utf8').on('data', (part: string) => (said += part));
      const closed = new Promise((resolve) => socket.on('close', resolve));
      socket.on('error', () => undefined);
      const sendRequest = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';
      socket.write(before + sendRequest);
      await vi.waitFor(() => expect(said).toMatch(/\{.*\}$/), 60_000);
      expect(said).not.toMatch(/\r\nConnection: close\r\n/i);
      said = '';
      const drained = drainHttp(server.app, { clock: systemClock, deadlineMs: 10_000 });
      socket.write(sendRequest);
      await closed;
      expect(said).toMatch(/^HTTP\/1\.1 200 /);
      expect(said).toMatch(/\r\nConnection: close\r\n/i);
      expect(await drained).toBe(true);
    },
  );

  test('ends open streams by their signal', async () => {
    const { server, arrived } = await startSlow();
    const agent = new Agent({ keepAlive: true });
    const stream = get(`${server.url}/v1/events`, agent);
    await arrived;
    expect(await drainHttp(server.app, { clock: systemClock, deadlineMs: 10_000 })).toBe(true);
    expect((await stream).text).toBe(': open\n\n');
    agent.destroy();
  });

  test('destroys open connections at the deadline', async () => {
    const { server, arrived } = await startSlow();
    const agent = new Agent({ keepAlive: true });
    const stuck = get(`${server.url}/v1/tasks/1`, agent).catch((error: Error) => error.message);
    await arrived;
    expect(await drainHttp(server.app, { clock: systemClock, deadlineMs: 100 })).toBe(false);
    expect(await stuck).toMatch(/socket hang up|ECONNRESET/);
    agent.destroy();
  });

  test('is cut short by a signal', async () => {
    const { server, arrived } = await startSlow();
    const agent = new Agent();
    const stuck = get(`${server.url}/v1/tasks/1`, agent).catch((error: Error) => error.message);
    await arrived;
    const options = { clock: systemClock, deadlineMs: 60_000, signal: AbortSignal.timeout(50) };
    expect(await drainHttp(server.app, options)).toBe(false);
    await stuck;
  });
});

class FakeProcess extends EventEmitter implements SignalSource {
  exits: number[] = [];
  exit(code: number): void {
    this.exits.push(code);
  }
}

function serve(steps: DrainStep[], deadlineMs = 1000) {
  const signals = new FakeProcess();
  const log = listeningLog();
  const code = serveUntilSignal({ clock: systemClock, log, deadlineMs, steps, signals });
  return { signals, log, code };
}

describe('until a signal', () => {
  test('the steps run in order, and the code is 0', async () => {
    const ran: string[] = [];
    const step = (name: string): DrainStep => ({
      name,
      run: async () => {
        await pause(5);
        ran.push(name);
      },
    });
    const { signals, code } = serve([step('readiness'), step('http'), step('storage')]);
    signals.emit('SIGTERM');
    expect(await code).toBe(0);
    expect(ran).toEqual(['readiness', 'http', 'storage']);
    expect(signals.listenerCount('SIGTERM') + signals.listenerCount('SIGINT')).toBe(0);
  });

  test('the process itself is listened to', async () => {
    const log = listeningLog();
    const code = serveUntilSignal({ clock: systemClock, log, deadlineMs: 1000, steps: [] });
    process.kill(process.pid, 'SIGTERM');
    expect(await code).toBe(0);
    expect(log.lines.map(({ message }) => message)).toEqual(['draining', 'drained']);
  });

  test('a failing step is logged and the next ones still run', async () => {
    let closed = false;
    const { signals, code, log } = serve([
      { name: 'http', run: () => Promise.reject(new Error('stuck')) },
      {
        name: 'sync',
        run: () => {
          throw new Error('thrown');
        },
      },
      { name: 'storage', run: () => (closed = true) },
    ]);
    signals.emit('SIGINT');
    expect(await code).toBe(1);
    expect(closed).toBe(true);
    expect(
      log.lines.filter(({ level }) => level === 'error').map(({ message }) => message),
    ).toEqual(['drain step failed', 'drain step failed']);
  });

  test('a step that does not end is left at the deadline, with its signal aborted', async () => {
    let notified = false;
    let closed = false;
    const { signals, code, log } = serve(
      [
        {
          name: 'http',
          run: (signal) =>
            new Promise(() => signal.addEventListener('abort', () => (notified = true))),
        },
        { name: 'storage', run: () => (closed = true) },
      ],
      50,
    );
    signals.emit('SIGTERM');
    expect(await code).toBe(1);
    expect([notified, closed]).toEqual([true, true]);
    expect(log.lines).toContainEqual(expect.objectContaining({ level: 'warn' }));
  });

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('a second signal, %s, ends the process at once with %i', async (name, exitCode) => {
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const { signals, code } = serve([{ name: 'http', run: () => held }]);
    signals.emit('SIGTERM');
    await pause(5);
    expect(signals.exits).toEqual([]);
    signals.emit(name);
    expect(signals.exits).toEqual([exitCode]);
    release();
    await code;
  });
});
