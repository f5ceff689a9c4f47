import type { ClientHttp2Session } from 'node:http2';
import { deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  framed,
  openSession,
  rawCall,
  startTransport,
  type TestTransport,
} from './transport.test-support.js';

describe('transport', () => {
  let server: TestTransport;
  let session: ClientHttp2Session;

  beforeAll(async () => {
    server = await startTransport();
    session = openSession(server.url);
  });
  afterAll(async () => {
    session.destroy();
    await server.close();
  });

  const hello = framed(Buffer.from('hello'));

  test('unary call: the response is headers, one message and trailers', async () => {
    const respond = await rawCall(session, '/t.T/Echo', hello);
    expect(respond.headers).toMatchObject({
      ':status': 200,
      'content-type': 'application/grpc+proto',
    });
    expect(respond.headers).not.toHaveProperty('grpc-status');
    expect(respond.body).toEqual(hello);
    expect({ ...respond.trailers }).toMatchObject({ 'grpc-status': '0' });
  });

  test('a message may be split across DATA frames at any byte', async () => {
    for (let at = 1; at < hello.length; at++) {
      const pieces = [hello.subarray(0, at), hello.subarray(at)];
      expect((await rawCall(session, '/t.T/Echo', pieces)).body).toEqual(hello);
    }
    const bytes = [...hello].map((byte) => Buffer.of(byte));
    expect((await rawCall(session, '/t.T/Echo', bytes)).body).toEqual(hello);
  });

  test('an error before any message is trailers-only and may contain any text', async () => {
    const respond = await rawCall(session, '/t.T/Fail', framed(Buffer.from('100% für dich')));
    expect(respond.headers).toMatchObject({
      ':status': 200,
      'grpc-status': '5',
      'grpc-message': '100%25 f%C3%BCr dich',
    });
    expect(respond.trailers).toEqual({});
  });

  test('a request that is not gRPC gets a plain HTTP error', async () => {
    for (const type of ['application/json', 'application/grpc-web', 'application/grpc+json', '']) {
      const respond = await rawCall(session, '/t.T/Echo', hello, { 'content-type': type });
      expect(respond.headers).toMatchObject({ ':status': 415 });
      expect(respond.status).toBeUndefined();
      expect(respond.body.toString()).toContain('application/grpc');
    }
    const put = await rawCall(session, '/t.T/Echo', hello, { ':method': 'PUT' });
    expect(put.headers).toMatchObject({ ':status': 405, allow: 'POST' });
  });

  test.each(['application/grpc', 'application/grpc+proto', 'Application/gRPC; charset=utf-8'])(
    'the content type %s is gRPC',
    async (type) => {
      const respond = await rawCall(session, '/t.T/Echo', hello, { 'content-type': type });
      expect(respond.status).toBe('0');
    },
  );

  test('an unknown method is UNIMPLEMENTED', async () => {
    for (const path of ['/t.T/Nothing', '/x.X/Echo', '/', '/t.T/Echo/', `/${'x'.repeat(5_000)}`]) {
      const respond = await rawCall(session, path, hello);
      expect(respond.headers).toMatchObject({ ':status': 200, 'grpc-status': '12' });
      expect(String(respond.headers['grpc-message']).length).toBeLessThan(200);
    }
  });

  test('an invalid grpc-timeout is rejected', async () => {
    for (const timeout of ['5', '1s', '123456789m', 'soon']) {
      const respond = await rawCall(session, '/t.T/Echo', hello, { 'grpc-timeout': timeout });
      expect(respond.headers).toMatchObject({ 'grpc-status': '13' });
      expect(respond.headers['grpc-message']).toContain('grpc-timeout');
    }
  });

  test('deadline: the call ends with DEADLINE_EXCEEDED, even while its request is incomplete', async () => {
    const timeout = { 'grpc-timeout': '60m' };
    const startedAt = performance.now();
    const respond = await rawCall(session, '/t.T/Hold', hello, timeout);
    expect(respond.status).toBe('4');
    expect(performance.now() - startedAt).toBeGreaterThan(50);
    expect(server.aborted.pop()).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    const stream = session.request({
      ':method': 'POST',
      ':path': '/t.T/Echo',
      'content-type': 'application/grpc',
      ...timeout,
    });
    stream.on('error', () => undefined);
    stream.write(hello.subarray(0, 7));
    const headers = await new Promise((resolve) => stream.on('response', resolve));
    expect(headers).toMatchObject({ 'grpc-status': '4' });
  });

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
  ] as const)('messages compressed by %s are read', async (encoding, compress) => {
    const body = framed(compress(Buffer.from('hello')), 1);
    const headers = { 'grpc-encoding': encoding };
    expect((await rawCall(session, '/t.T/Echo', body, headers)).body).toEqual(hello);
    // A message of such a call need not be compressed.
    expect((await rawCall(session, '/t.T/Echo', hello, headers)).body).toEqual(hello);
    const chat = Buffer.concat([body, hello, body]);
    const respond = await rawCall(session, '/t.T/Chat', chat, headers);
    expect(respond.body).toEqual(Buffer.concat([hello, hello, hello]));
  });

  test('a message that cannot be decompressed ends the call', async () => {
    const status = async (body: Buffer, encoding?: string, path = '/t.T/Echo') =>
      (await rawCall(session, path, body, encoding ? { 'grpc-encoding': encoding } : {})).status;
    const nonsense = framed(Buffer.from('not gzip'), 1);
    expect(await status(nonsense, 'gzip')).toBe('13');
    expect(await status(nonsense, 'gzip', '/t.T/Chat')).toBe('13');
    expect(await status(nonsense)).toBe('13');
    expect(await status(nonsense, 'identity')).toBe('13');
    expect(await status(framed(gzipSync(Buffer.alloc(64 * 1024 * 1024)), 1), 'gzip')).toBe('8');
    const unknown = await rawCall(session, '/t.T/Echo', hello, { 'grpc-encoding': 'snappy' });
    expect(unknown.headers).toMatchObject({
      'grpc-status': '12',
      'grpc-accept-encoding': 'identity,deflate,gzip',
    });
  });

  test('a unary method rejects zero, two and partial request messages', async () => {
    const two = Buffer.concat([hello, hello]);
    expect((await rawCall(session, '/t.T/Echo', two)).status).toBe('12');
    expect((await rawCall(session, '/t.T/Echo', [hello, hello])).status).toBe('12');
    expect((await rawCall(session, '/t.T/Echo', [])).status).toBe('12');
    expect((await rawCall(session, '/t.T/Echo', hello.subarray(0, 8))).status).toBe('13');
    expect((await rawCall(session, '/t.T/Echo', framed(Buffer.from('x'), 3))).status).toBe('13');
    expect((await rawCall(session, '/t.T/Echo', framed(Buffer.alloc(0)))).status).toBe('0');
  });

  test('an oversized message is rejected by its length prefix', async () => {
    const head = Buffer.from([0, 0xff, 0xff, 0xff, 0xff]);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/t.T/Echo',
      'content-type': 'application/grpc',
    });
    stream.write(head);
    const headers = await new Promise((resolve) => stream.on('response', resolve));
    expect(headers).toMatchObject({ 'grpc-status': '8' });
    stream.resume();
    // RST_STREAM(NO_ERROR) stops the rest of the request.
    await new Promise((resolve) => stream.on('close', resolve));
    expect(stream.rstCode).toBe(0);
  });

  test('binary and repeated headers are accepted', async () => {
    const respond = await rawCall(session, '/t.T/Echo', hello, {
      'trace-bin': 'AQ==',
      'other-bin': 'AQ',
      'broken-bin': '!!!',
      'x-many': 'a, b',
    });
    expect(respond.status).toBe('0');
  });

  test('a stream of large and small messages arrives complete and in order', async () => {
    for (const [count, size] of [
      [3_000, 10],
      [40, 100_000],
      [1, 3_000_000],
      [0, 0],
    ] as const) {
      const respond = await rawCall(session, '/t.T/Count', framed(Buffer.from(`${count} ${size}`)));
      expect(respond.status).toBe('0');
      const sent = Array.from({ length: count }, (_, n) =>
        framed(Buffer.from(String(n).padEnd(size))),
      );
      expect(respond.body.equals(Buffer.concat(sent))).toBe(true);
    }
  });

  test('a cancelled call aborts its work', async () => {
    const { held, aborted } = server;
    for (const code of [0, 8, 2]) {
      aborted.length = held.length = 0;
      const stream = session.request({
        ':method': 'POST',
        ':path': '/t.T/Hold',
        'content-type': 'application/grpc',
      });
      stream.on('error', () => undefined);
      stream.end(hello);
      await expect.poll(() => held.length).toBe(1);
      stream.close(code);
      await expect.poll(() => aborted).toMatchObject([{ code: 'CANCELLED' }]);
      // A late response is ignored.
      held[0]!.respond(hello);
      held[0]!.end();
    }
    const own = openSession(server.url);
    aborted.length = held.length = 0;
    void rawCall(own, '/t.T/Hold', hello);
    await expect.poll(() => held.length).toBe(1);
    own.destroy();
    await expect.poll(() => aborted).toMatchObject([{ code: 'CANCELLED' }]);
  });
});
