import { once } from 'node:events';
import { connect } from 'node:http2';
import { createServer, type AddressInfo } from 'node:net';
import { create, toBinary } from '@bufbuild/protobuf';
import { reflectionV1 } from '@millrace/contract/grpc';
import { systemClock } from '@millrace/kit/clock';
import { PeerMemory, peerMemoryLimits } from '@millrace/kit/peer-memory';
import { GrpcTransport, type Method, type ServerCall } from '@millrace/wire/grpc';
import { expect, test } from 'vitest';
import { Reflection } from './reflection.js';

/** A message with its gRPC prefix. */
function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

test('reflection: responses wait for a caller that does not read', async () => {
  const reflection = new Reflection(['millrace.db.v1.Database'], systemClock).method(reflectionV1);
  const calls: ServerCall[] = [];
  const method: Method = {
    takes: 'many',
    start: (call, requests) => {
      calls.push(call);
      reflection.start(call, requests);
    },
  };
  const memory = new PeerMemory(peerMemoryLimits());
  const connections = new GrpcTransport({
    clock: systemClock,
    memory,
    methods: new Map([['/r.R/Info', method]]),
  });
  const server = createServer((socket) => connections.take(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const stream = session.request({
    ':method': 'POST',
    ':path': '/r.R/Info',
    'content-type': 'application/grpc',
  });
  const messageRequest = {
    case: 'fileContainingSymbol',
    value: 'millrace.db.v1.Database',
  } as const;
  const schema = reflectionV1.ServerReflectionRequestSchema;
  const request = framed(toBinary(schema, create(schema, { messageRequest })));
  const requestCount = 200;
  stream.end(Buffer.concat(Array.from({ length: requestCount }, () => request)));
  await expect.poll(() => calls[0]?.unsentBytes ?? 0).toBeGreaterThan(1024 * 1024);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(calls[0]!.unsentBytes).toBeLessThan(2 * 1024 * 1024);

  // A caller that reads gets every response.
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
  await once(stream, 'end');
  expect(bytes % requestCount).toBe(0);
  expect(bytes / requestCount).toBeGreaterThan(10_000);
  session.close();
  server.close();
  await connections.close(AbortSignal.abort());
});
