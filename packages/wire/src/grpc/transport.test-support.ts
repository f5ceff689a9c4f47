import { once } from 'node:events';
import { connect, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import { connect as dial, createServer, type AddressInfo, type Socket } from 'node:net';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { PeerMemory, peerMemoryLimits } from '@millrace/kit/peer-memory';
import type { Method, ServerCall, RequestQueue } from './methods.js';
import { errorStatus } from '../base/messages.js';
import { GrpcTransport, type TlsKeys } from './transport.js';

/** A message as gRPC frames it. */
export function framed(message: Uint8Array, flag = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

export interface TestTransport {
  readonly port: number;
  readonly url: string;
  /** Calls of Hold without a response yet. */
  readonly held: ServerCall[];
  /** Why calls of Hold were given up. */
  readonly aborted: unknown[];
  readonly connections: GrpcTransport;
  /** `allowHalfOpen`: it does not hang up when the server does. */
  dial(allowHalfOpen?: boolean): Promise<Socket>;
  close(signal?: AbortSignal): Promise<void>;
}

/** A server of small methods on the transport alone. */
export async function startTransport(
  options: { clock?: Clock; tls?: TlsKeys; memory?: PeerMemory } = {},
): Promise<TestTransport> {
  const held: ServerCall[] = [];
  const aborted: unknown[] = [];
  const { clock = systemClock, tls, memory = new PeerMemory(peerMemoryLimits()) } = options;
  const methods = testMethods(held, aborted);
  const connections = new GrpcTransport({ clock, memory, methods }, tls);
  const server = createServer((socket) => connections.take(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${tls ? 'https' : 'http'}://localhost:${port}`,
    held,
    aborted,
    connections,
    dial: async (allowHalfOpen = false) => {
      const socket = dial({ port, host: '127.0.0.1', allowHalfOpen });
      await once(socket, 'connect');
      socket.on('error', () => undefined);
      return socket;
    },
    close: async (signal = AbortSignal.abort()) => {
      server.close();
      await connections.close(signal);
    },
  };
}

function testMethods(held: ServerCall[], aborted: unknown[]): Map<string, Method> {
  const hold = (call: ServerCall) => {
    held.push(call);
    call.work = { abort: (reason) => void aborted.push(reason) };
  };
  return new Map<string, Method>([
    ['/t.T/Echo', { takes: 'one', start: (call, request) => call.respond(request) }],
    ['/t.T/Hold', { takes: 'one', start: hold }],
    // Reads nothing of what it is sent.
    ['/t.T/Deaf', { takes: 'many', start: hold }],
    [
      '/t.T/Fail',
      {
        takes: 'one',
        start: (call, request) => call.end(errorStatus('NOT_FOUND', request.toString())),
      },
    ],
    [
      '/t.T/Count',
      {
        takes: 'one',
        start: (call, request) => {
          const [count, size] = request.toString().split(' ').map(Number);
          for (let n = 0; n < count!; n++) call.send(Buffer.from(String(n).padEnd(size!)));
          call.end();
        },
      },
    ],
    [
      '/t.T/Chat',
      {
        takes: 'many',
        start: (call, requests) => void chat(call, requests),
      },
    ],
  ]);
}

async function chat(call: ServerCall, requests: RequestQueue): Promise<void> {
  for (let next = await requests.next(); next; next = await requests.next()) call.send(next);
  call.end();
}

export interface RawAnswer {
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly rstCode: number | undefined;
  /** Where gRPC put it. */
  readonly status: string | undefined;
}

export function openSession(url: string, options: object = {}): ClientHttp2Session {
  const session = connect(url, options);
  session.on('error', () => undefined);
  return session;
}

/** A call by node's HTTP/2 client, with any headers and bytes. */
export async function rawCall(
  session: ClientHttp2Session,
  path: string,
  body: Buffer | readonly Buffer[],
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  const respond = { headers: {}, trailers: {}, chunks: [] as Buffer[] };
  stream.on('response', (sent) => (respond.headers = sent));
  stream.on('trailers', (sent) => (respond.trailers = sent));
  stream.on('data', (chunk: Buffer) => respond.chunks.push(chunk));
  stream.on('error', () => undefined);
  for (const chunk of Buffer.isBuffer(body) ? [body] : body) stream.write(chunk);
  stream.end();
  await new Promise((resolve) => stream.on('close', resolve));
  const all: IncomingHttpHeaders = { ...respond.headers, ...respond.trailers };
  return {
    headers: respond.headers,
    trailers: respond.trailers,
    body: Buffer.concat(respond.chunks),
    rstCode: stream.rstCode,
    status: all['grpc-status'] as string | undefined,
  };
}
