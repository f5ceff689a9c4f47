import { readFileSync } from 'node:fs';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { framed, openSession, rawCall, startTransport } from './transport.test-support.js';

describe('transport', () => {
  const hello = framed(Buffer.from('hello'));

  test('close: calls in flight finish and new calls are rejected', async () => {
    const server = await startTransport();
    const session = openSession(server.url);
    const underWay = rawCall(session, '/t.T/Hold', hello);
    await expect.poll(() => server.held.length).toBe(1);
    const goaway = new Promise((resolve) => session.on('goaway', resolve));
    let isClosed = false;
    const closed = server.close(new AbortController().signal).then(() => (isClosed = true));
    expect(await goaway).toBe(0);
    expect(() => session.request({ ':path': '/t.T/Echo' })).toThrow();
    expect(isClosed).toBe(false);
    server.held[0]!.respond(Buffer.from('late'));
    expect((await underWay).body).toEqual(framed(Buffer.from('late')));
    await closed;
    expect(server.aborted).toEqual([]);
  });

  test('close: the signal aborts calls that do not end', async () => {
    const server = await startTransport();
    const session = openSession(server.url);
    const underWay = rawCall(session, '/t.T/Hold', hello);
    const idle = await server.dial();
    await expect.poll(() => server.held.length).toBe(1);
    const cut = new AbortController();
    const closed = server.close(cut.signal);
    setTimeout(() => cut.abort(), 100);
    await closed;
    expect((await underWay).status).toBeUndefined();
    expect(server.aborted).toMatchObject([{ code: 'CANCELLED' }]);
    idle.destroy();
  });

  test('close: a connection accepted afterwards is closed immediately', async () => {
    const server = await startTransport();
    await server.connections.close(AbortSignal.abort());
    const socket = await server.dial();
    await new Promise((resolve) => socket.resume().on('close', resolve));
    await server.close();
  });

  const pem = (name: string) =>
    readFileSync(
      fileURLToPath(new URL(`../../../db/test/server/certificates/${name}`, import.meta.url)),
    );

  test('TLS: the client must negotiate h2', async () => {
    const tls = { cert: pem('server.pem'), key: pem('server.key'), clientCa: undefined };
    const server = await startTransport({ tls });
    const ca = pem('ca.pem');
    const session = openSession(server.url, { ca });
    expect((await rawCall(session, '/t.T/Echo', hello)).body).toEqual(hello);
    for (const ALPNProtocols of [undefined, ['http/1.1']]) {
      const socket = connectTls({
        port: server.port,
        host: 'localhost',
        ca,
        ...(ALPNProtocols && { ALPNProtocols }),
      });
      socket.on('error', () => undefined);
      await new Promise((resolve) => socket.resume().on('close', resolve));
    }
    const plain = await server.dial();
    plain.write('GET / HTTP/1.1\r\n\r\n');
    await new Promise((resolve) => plain.resume().on('close', resolve));
    const silent = await server.dial();
    const cut = new AbortController();
    setTimeout(() => cut.abort(), 100);
    await server.close(cut.signal);
    silent.destroy();
  });
});
