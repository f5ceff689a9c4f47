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
  'queue-grpc-gzip': {
    server: 'queue',
    title: '60 finished gRPC messages of 16 KB without a token that inflate to 15.9 MiB',
    run({ grpc }, onRefused) {
      const bomb = grpcMessage(gzipSync(Buffer.alloc(15.9 * mebibyte)), 1);
      const session = openSession(grpc);
      for (let n = 0; n < 60; n++) {
        openCall(session, submitPath, { 'grpc-encoding': 'gzip' }, onRefused).end(bomb);
      }
    },
  },
  'queue-grpc-unfinished': {
    server: 'queue',
    title: '40 unfinished gRPC messages of 15.5 MiB without a token on one connection',
    run({ grpc }, onRefused) {
      const begun = grpcMessage(Buffer.alloc(15.5 * mebibyte), 0).subarray(0, -1);
      const session = openSession(grpc);
      for (let n = 0; n < 40; n++) openCall(session, submitPath, {}, onRefused).write(begun);
    },
  },
  'queue-grpc-silent': {
    server: 'queue',
    title: '3,000 silent connections to the gRPC port of the queue',
    run({ grpc }, onRefused) {
      for (let n = 0; n < 3_000; n++) openSocket(grpc, () => {}).on('close', onRefused);
    },
  },
  'queue-grpc-streams': {
    server: 'queue',
    title: '20,000 gRPC streams without a body and without a token on one connection',
    run({ grpc }, onRefused) {
      const session = openSession(grpc);
      for (let n = 0; n < 20_000; n++) openCall(session, submitPath, {}, onRefused);
    },
  },
  'queue-grpc-unread': {
    server: 'queue',
    title: '40 Claim streams of a worker that reads nothing, with 400 tasks of 1 MiB',
    prepare: fillPullQueue,
    run({ grpc, token }, onRefused) {
      // Fields queue, worker and max_outstanding.
      const body = Buffer.from('\x0a\x04mail\x12\x01w\x18\x32', 'latin1');
      const session = openSession(grpc, { initialWindowSize: 0 });
      const headers = { authorization: `Bearer ${token}` };
      for (let n = 0; n < 40; n++) {
        openCall(session, claimPath, headers, onRefused).end(grpcMessage(body, 0));
      }
    },
  },
  'queue-claims': {
    server: 'queue',
    title: '12,000 Claim streams with filters of their own, and 20 submits',
    prepare: fillPullQueue,
    run({ grpc, http, token }, onRefused) {
      const headers = { authorization: `Bearer ${token}` };
      for (let n = 0; n < 12_000; n += 100) {
        const session = openSession(grpc);
        for (let stream = 0; stream < 100; stream++) {
          const handler = `h${n + stream}`.padEnd(8, 'x');
          const body = Buffer.from(`\x0a\x04mail\x12\x01w\x2a\x08${handler}`, 'latin1');
          openCall(session, claimPath, headers, onRefused).end(grpcMessage(body, 0));
        }
      }
      for (let n = 0; n < 20; n++) {
        setTimeout(() => void submit({ http, token }, { handler_ref: `h${n}` }), 4_000 + 200 * n);
      }
    },
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

const submitPath = '/queue.v1.Queue/Submit';
const claimPath = '/queue.v1.Queue/Claim';

async function fillPullQueue(server) {
  await callQueue(server, 'PUT', '/v1/admin/queues/mail/config', {
    callback: { protocol: 'pull' },
    limits: { max_in_flight: 10_000 },
  });
  const payload = Buffer.alloc(mebibyte).toString('base64');
  const tasks = Array.from({ length: 10 }, () => ({ handler_ref: 'a', payload }));
  for (let n = 0; n < 40; n++)
    await callQueue(server, 'POST', '/v1/queues/mail/tasks:batch', tasks);
}

function submit(server, task) {
  return callQueue(server, 'POST', '/v1/queues/mail/tasks', task);
}

async function callQueue({ http, token }, method, path, given) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const request = { method, headers, body: JSON.stringify(given) };
  const answer = await fetch(`${http}${path}`, request);
  if (!answer.ok) throw new Error(`${method} ${path} was refused: ${await answer.text()}`);
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
