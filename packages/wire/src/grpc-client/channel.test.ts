import { createServer } from 'node:net';
import { systemClock } from '@millrace/kit/clock';
import { afterEach, describe, expect, test } from 'vitest';
import { framed, startTransport, type TestTransport } from '../grpc/transport.test-support.js';
import { ManualClock } from '../grpc/manual-clock.test-support.js';
import { grpcCodes } from '../base/messages.js';
import { Channel, timeoutText, type ChannelOptions } from './channel.js';

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

function openChannel(port: number, options: Partial<ChannelOptions> = {}): Channel {
  const place = { host: '127.0.0.1', port };
  const channel = new Channel({
    place,
    clock: systemClock,
    maxMessageBytes: 16 * 1024 * 1024,
    ...options,
  });
  closing.push(() => channel.close());
  return channel;
}

describe('channel', () => {
  async function start(options: Partial<ChannelOptions> = {}) {
    const server: TestTransport = await startTransport();
    closing.push(() => server.close());
    return { server, channel: openChannel(server.port, options) };
  }

  test('channel: messages of any size are echoed unchanged', async () => {
    const { channel } = await start();
    for (const size of [0, 1, 16_379, 16_384, 65_535, 1_000_000, 8 * 1024 * 1024]) {
      const message = Buffer.alloc(size, 'm');
      const reply = await channel.unary('/t.T/Echo', framed(message));
      expect(reply.equals(message)).toBe(true);
    }
  });

  test('channel: an error keeps its code and its text', async () => {
    const { channel } = await start();
    const text = 'Kein Datensatz „k“: 100 % fehlt\n';
    await expect(channel.unary('/t.T/Fail', framed(Buffer.from(text)))).rejects.toMatchObject({
      code: grpcCodes.NOT_FOUND,
      details: text,
    });
    await expect(channel.unary('/t.T/None', framed(Buffer.from(text)))).rejects.toMatchObject({
      code: grpcCodes.UNIMPLEMENTED,
    });
  });

  test('channel: a response over the limit fails the call, not the connection', async () => {
    const { channel } = await start({ maxMessageBytes: 1_000 });
    const large = framed(Buffer.alloc(1_001));
    await expect(channel.unary('/t.T/Echo', large)).rejects.toMatchObject({
      code: grpcCodes.RESOURCE_EXHAUSTED,
    });
    expect(await channel.unary('/t.T/Echo', framed(Buffer.of(1)))).toEqual(Buffer.of(1));
  });

  test('channel: a deadline fails the call and cancels it on the server', async () => {
    const clock = new ManualClock();
    const { server, channel } = await start({ clock });
    const deadline = clock.now() + 5_000;
    const call = channel.unary('/t.T/Hold', framed(Buffer.of(1)), { deadline });
    const later = { deadline: clock.now() + 60_000 };
    const other = channel.unary('/t.T/Hold', framed(Buffer.of(2)), later);
    await expect.poll(() => server.held.length).toBe(2);
    clock.advance(5_000);
    await expect(call).rejects.toMatchObject({ code: grpcCodes.DEADLINE_EXCEEDED });
    await expect.poll(() => server.aborted.length).toBe(1);
    server.held[1]!.respond(Buffer.of(3));
    expect(await other).toEqual(Buffer.of(3));
  });

  test('channel: an abort rejects with its reason and cancels the call', async () => {
    const { server, channel } = await start();
    const stop = new AbortController();
    const call = channel.unary('/t.T/Hold', framed(Buffer.of(1)), { signal: stop.signal });
    await expect.poll(() => server.held.length).toBe(1);
    const reason = new Error('enough');
    stop.abort(reason);
    await expect(call).rejects.toBe(reason);
    await expect.poll(() => server.aborted.length).toBe(1);
    const late = channel.unary('/t.T/Echo', framed(Buffer.of(1)), { signal: stop.signal });
    await expect(late).rejects.toBe(reason);
  });

  test('channel: a stream delivers all messages in order to a slow reader', async () => {
    const { channel } = await start();
    let count = 0;
    for await (const message of channel.stream('/t.T/Count', framed(Buffer.from('400 10000')))) {
      expect([message.length, Number(message.toString())]).toEqual([10_000, count++]);
      if (count % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(count).toBe(400);
  });

  test('channel: leaving a stream cancels it', async () => {
    const { server, channel } = await start();
    const messages = channel.stream('/t.T/Hold', framed(Buffer.of(1)));
    const first = messages.next();
    await expect.poll(() => server.held.length).toBe(1);
    server.held[0]!.send(Buffer.of(7));
    expect((await first).value).toEqual(Buffer.of(7));
    await messages.return();
    await expect.poll(() => server.aborted.length).toBe(1);
  });

  test('pool: calls above the stream limit use a further connection', async () => {
    const { server, channel } = await start();
    const calls = Array.from({ length: 1_500 }, (_, n) =>
      channel.unary('/t.T/Hold', framed(Buffer.from(String(n)))),
    );
    await expect.poll(() => server.held.length).toBe(1_500);
    server.held.forEach((call, n) => call.respond(Buffer.from(String(n))));
    expect(await Promise.all(calls)).toHaveLength(1_500);
  });
});

test('channel: a refused connection is UNAVAILABLE, a later call tries again', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  const channel = openChannel(port);
  for (let n = 0; n < 2; n++) {
    await expect(channel.unary('/t.T/Echo', framed(Buffer.of(1)))).rejects.toMatchObject({
      code: grpcCodes.UNAVAILABLE,
      details: expect.stringContaining('ECONNREFUSED'),
    });
  }
});

test('channel: a closed channel refuses calls', async () => {
  const channel = openChannel(1);
  channel.close();
  await expect(channel.unary('/t.T/Echo', framed(Buffer.of(1)))).rejects.toMatchObject({
    code: grpcCodes.UNAVAILABLE,
  });
});

test('timeout: is at least what is left and has at most 8 digits', () => {
  expect([0, 0.2, 1, 9_999].map(timeoutText)).toEqual(['1m', '1m', '1m', '9999m']);
  expect([10_000, 29_999, 30_000, 1e15].map(timeoutText)).toEqual([
    '10S',
    '30S',
    '30S',
    '99999999S',
  ]);
});
