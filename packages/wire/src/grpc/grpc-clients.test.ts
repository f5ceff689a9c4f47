import { Client, credentials, Metadata, status, type ServiceError } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTransport, type TestTransport } from './transport.test-support.js';

describe('transport', () => {
  let server: TestTransport;
  let client: Client;
  const asIs = (bytes: Buffer) => bytes;

  beforeAll(async () => {
    server = await startTransport();
    const options = { 'grpc.max_receive_message_length': -1 };
    client = new Client(`localhost:${server.port}`, credentials.createInsecure(), options);
  });
  afterAll(async () => {
    client.close();
    await server.close();
  });

  function unary(path: string, request: Buffer, options = {}): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const done = (error: ServiceError | null, respond?: Buffer) =>
        error ? reject(error) : resolve(respond!);
      client.makeUnaryRequest(path, asIs, asIs, request, new Metadata(), options, done);
    });
  }

  test('messages of any size are echoed unchanged', async () => {
    for (const size of [0, 1, 16_379, 16_384, 65_535, 1_000_000, 8 * 1024 * 1024]) {
      const message = Buffer.alloc(size, 'm');
      expect((await unary('/t.T/Echo', message)).equals(message)).toBe(true);
    }
    const large = Buffer.alloc(8 * 1024 * 1024 + 1);
    await expect(unary('/t.T/Echo', large)).rejects.toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
    });
  });

  test('an error keeps its code and its text', async () => {
    const text = 'Kein Datensatz „k“: 100 % fehlt\n';
    await expect(unary('/t.T/Fail', Buffer.from(text))).rejects.toMatchObject({
      code: status.NOT_FOUND,
      details: text,
    });
    await expect(unary('/t.T/None', Buffer.from(text))).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
    });
  });

  test('the deadline of a client is enforced', async () => {
    server.aborted.length = 0;
    const deadline = Date.now() + 100;
    await expect(unary('/t.T/Hold', Buffer.of(1), { deadline })).rejects.toMatchObject({
      code: status.DEADLINE_EXCEEDED,
    });
    await expect.poll(() => server.aborted.length).toBe(1);
  });

  test('sendHeaders sends the headers before the first message', async () => {
    server.held.length = server.aborted.length = 0;
    const stream = client.makeServerStreamRequest('/t.T/Hold', asIs, asIs, Buffer.of(1));
    stream.on('error', () => undefined);
    const metadata = new Promise((resolve) => stream.on('metadata', resolve));
    await expect.poll(() => server.held.length).toBe(1);
    server.held[0]!.sendHeaders();
    await metadata;
    const messages: string[] = [];
    stream.on('data', (bytes: Buffer) => messages.push(bytes.toString()));
    for (const text of ['a', 'b', 'c']) server.held[0]!.send(Buffer.from(text));
    await expect.poll(() => messages).toEqual(['a', 'b', 'c']);
    stream.cancel();
    await expect.poll(() => server.aborted).toMatchObject([{ code: 'CANCELLED' }]);
  });

  test('an error after messages arrives after them', async () => {
    server.held.length = 0;
    const stream = client.makeServerStreamRequest('/t.T/Hold', asIs, asIs, Buffer.of(1));
    const seen: string[] = [];
    stream.on('data', (bytes: Buffer) => seen.push(bytes.toString()));
    const errorStatus = new Promise((resolve) => stream.on('error', resolve));
    await expect.poll(() => server.held.length).toBe(1);
    const [call] = server.held;
    call!.send(Buffer.from('first'));
    call!.end({ code: 10, message: 'enough', details: Buffer.of(1, 2, 3) });
    call!.send(Buffer.from('never'));
    const error = (await errorStatus) as ServiceError;
    expect(error).toMatchObject({ code: 10, details: 'enough' });
    expect(error.metadata.get('grpc-status-details-bin')).toEqual([Buffer.of(1, 2, 3)]);
    expect(seen).toEqual(['first']);
  });

  test('hundreds of calls and streams share a connection', async () => {
    const count = (request: string) =>
      new Promise<number>((resolve, reject) => {
        let messages = 0;
        const stream = client.makeServerStreamRequest(
          '/t.T/Count',
          asIs,
          asIs,
          Buffer.from(request),
        );
        stream.on('data', () => messages++);
        stream.on('end', () => resolve(messages));
        stream.on('error', reject);
      });
    const streams = Array.from({ length: 200 }, (_, n) => count(`${n} 500`));
    const calls = Array.from({ length: 500 }, (_, n) => unary('/t.T/Echo', Buffer.from(String(n))));
    expect(await Promise.all(streams)).toEqual(streams.map((_, n) => n));
    expect((await Promise.all(calls)).map(String)).toEqual(calls.map((_, n) => String(n)));
  });

  test('a bidirectional stream alternates until the client half-closes', async () => {
    const chat = client.makeBidiStreamRequest('/t.T/Chat', asIs, asIs);
    const received: string[] = [];
    chat.on('data', (bytes: Buffer) => received.push(bytes.toString()));
    const ended = new Promise((resolve) => chat.on('end', resolve));
    for (let n = 0; n < 3; n++) {
      chat.write(Buffer.from(`m${n}`));
      await expect.poll(() => received.length).toBe(n + 1);
    }
    for (let n = 3; n < 1_000; n++) chat.write(Buffer.from(`m${n}`));
    chat.end();
    await ended;
    expect(received).toEqual(Array.from({ length: 1_000 }, (_, n) => `m${n}`));
  });

  test('messages sent in one tick share a write', async () => {
    server.held.length = 0;
    const stream = client.makeServerStreamRequest('/t.T/Hold', asIs, asIs, Buffer.of(1));
    let messages = 0;
    stream.on('data', () => void messages++);
    stream.on('error', () => undefined);
    await expect.poll(() => server.held.length).toBe(1);
    const call = server.held[0]!;
    let writes = 0;
    call.onSent = () => void writes++;
    for (let n = 0; n < 1_000; n++) call.send(Buffer.from('small'));
    expect(call.unsentBytes).toBe(10_000);
    await expect.poll(() => messages).toBe(1_000);
    expect(writes).toBe(1);
    expect(call.unsentBytes).toBe(0);
    stream.cancel();
  });
});
