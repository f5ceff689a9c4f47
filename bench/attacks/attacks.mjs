/** What a peer can make a server hold: unfinished requests, inflated messages, unread answers. */
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { document, millraceCalls } from '../db-server/messages.mjs';

const mebibyte = 2 ** 20;

export const attacks = {
  'db-gzip': {
    server: 'db',
    title: '120 gRPC messages of 8 KB that inflate to 8 MiB, half of them ended',
    run({ grpc }, onRefused) {
      const bomb = grpcMessage(gzipSync(Buffer.alloc(8 * mebibyte - 100)), 1);
      const session = openSession(grpc);
      for (let n = 0; n < 120; n++) {
        const call = openCall(session, insertPath, { 'grpc-encoding': 'gzip' }, onRefused);
        // Only an ended message is inflated.
        if (n % 2 === 0) call.end(bomb);
        else call.write(bomb);
      }
    },
  },
  'db-unfinished': {
    server: 'db',
    title: '4 connections with 30 unfinished gRPC messages of 8 MiB each',
    run({ grpc }, onRefused) {
      const begun = grpcMessage(Buffer.alloc(8 * mebibyte - 100), 0).subarray(0, -1);
      for (let n = 0; n < 4; n++) {
        const session = openSession(grpc);
        for (let call = 0; call < 30; call++) {
          openCall(session, insertPath, {}, onRefused).write(begun);
        }
      }
    },
  },
  'db-unread': {
    server: 'db',
    title: '2 connections with 250 gRPC reads of 1.9 MB each, whose answers are not taken',
    prepare: insertLargeRecord,
    run({ grpc }, onRefused) {
      const { path, body } = millraceCalls.read('large');
      for (let n = 0; n < 2; n++) {
        const session = openSession(grpc, { initialWindowSize: 0 });
        for (let call = 0; call < 250; call++) openCall(session, path, {}, onRefused).end(body);
      }
    },
  },
  'db-rest-unfinished': {
    server: 'db',
    title: '250 unfinished REST bodies of 4 MiB',
    run: (server, onRefused) =>
      unfinishedBodies(server, '/v1/people/records', { count: 250, size: 4 * mebibyte, onRefused }),
  },
  'db-rest-unread': {
    server: 'db',
    title: '500 connections with 4 REST reads of 1.9 MB each, whose answers are not taken',
    prepare: insertLargeRecord,
    run({ http }, onRefused) {
      const request = `GET /v1/keyed/keys/large HTTP/1.1\r\nHost: localhost\r\n\r\n`;
      for (let n = 0; n < 500; n++) {
        const socket = openSocket(http, onRefused);
        socket.pause();
        socket.write(request.repeat(4));
      }
    },
  },
  'queue-unfinished': {
    server: 'queue',
    title: '60 unfinished batches of 16 MiB on the queue',
    run: (server, onRefused) =>
      unfinishedBodies(server, '/v1/queues/mail/tasks:batch', {
        count: 60,
        size: 16 * mebibyte,
        onRefused,
      }),
  },
  'daemon-unfinished': {
    server: 'daemon',
    title: '900 unfinished bodies of 1 MiB on the daemon',
    run: (server, onRefused) =>
      unfinishedBodies(server, '/api/v1/spawn', { count: 900, size: mebibyte, onRefused }),
  },
};

for (const count of [100, 1_000, 3_000]) {
  attacks[`db-scans-${count}`] = {
    server: 'db',
    title: `${count} callers that each scan 20,000 records again and again`,
    prepare: insertPeople,
    run({ grpc }, onRefused) {
      for (let left = count; left > 0; left -= 1_000) {
        const session = openSession(grpc);
        for (let n = 0; n < Math.min(left, 1_000); n++) standingScan(session, onRefused);
      }
    },
  };
}

const insertPath = '/millrace.db.v1.Database/Insert';

async function insertLargeRecord({ http }) {
  const answer = await fetch(`${http}/v1/keyed/keys`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ key: 'large', data: { text: 'x'.repeat(1_900_000) } }),
  });
  if (!answer.ok) throw new Error(`the record was refused: ${await answer.text()}`);
}

async function insertPeople({ http }) {
  for (let at = 0; at < 20_000; at += 1_000) {
    const operations = Array.from({ length: 1_000 }, (_, n) => ({
      insert: { data: document(at + n) },
    }));
    const answer = await fetch(`${http}/v1/people/records:bulk`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ operations }),
    });
    if (!answer.ok) throw new Error(`the records were refused: ${await answer.text()}`);
  }
}

/** Scans again when a scan ends; one that is refused waits as the server asks. */
function standingScan(session, onRefused) {
  const { path, body } = millraceCalls.scan();
  let isRefused = false;
  const call = openCall(session, path, {}, () => {
    isRefused = true;
    onRefused();
  });
  call.end(body);
  call.once('close', () => {
    if (!session.destroyed) setTimeout(standingScan, isRefused ? 250 : 0, session, onRefused);
  });
}

function grpcMessage(bytes, isCompressed) {
  const head = Buffer.alloc(5);
  head[0] = isCompressed;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** A server that hangs up on the attacker is what is wanted. */
function openSession(url, settings) {
  return connectHttp2(url, { settings }).on('error', () => {});
}

function openCall(session, path, headers, onRefused) {
  const call = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  const refuse = (fields) => {
    if (Number(fields['grpc-status'] ?? 0) !== 0) onRefused();
  };
  return call
    .on('response', refuse)
    .on('trailers', refuse)
    .on('error', () => {})
    .resume();
}

function openSocket(url, onRefused) {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname)
    .on('error', () => {})
    .on('data', (bytes) => {
      if (/^HTTP\/1.1 [45]/.test(bytes.toString('latin1', 0, 20))) onRefused();
    });
}

/** All of each body but its last byte. */
function unfinishedBodies({ http, token }, path, { count, size, onRefused }) {
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    ...(token ? [`Authorization: Bearer ${token}`] : []),
    'Content-Type: application/json',
    `Content-Length: ${size}`,
    '\r\n',
  ].join('\r\n');
  const body = Buffer.alloc(size - 1, ' ');
  for (let n = 0; n < count; n++) {
    const socket = openSocket(http, onRefused);
    socket.write(head);
    socket.write(body);
  }
}
