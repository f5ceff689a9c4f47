/**
 * Many watchers and one writer at a steady pace, in a process of its own. The time of a change runs
 * from the moment the writer sends it to the moment a watcher has it: commit and fan-out together.
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import grpc from '@grpc/grpc-js';
import * as db from '@millrace/contract/db';
import { etcdPut, etcdWatch } from './messages.mjs';

const [kind, url, watchers, perSecond, seconds] = process.argv.slice(2);
const address = new URL(url).host;
const same = (bytes) => Buffer.from(bytes);
const marker = /"at":(\d+\.?\d*)/g;
const times = [];

const kinds = {
  millrace: {
    watch(client) {
      const ask = create(db.WatchRequestSchema, {
        collection: 'fanout',
        encoding: db.DataEncoding.JSON,
      });
      const bytes = toBinary(db.WatchRequestSchema, ask);
      return client.makeServerStreamRequest(path('Watch'), same, same, bytes);
    },
    write(client, text, done) {
      const ask = create(db.InsertRequestSchema, {
        collection: 'fanout',
        dataJson: Buffer.from(text),
        encoding: db.DataEncoding.JSON,
      });
      const bytes = toBinary(db.InsertRequestSchema, ask);
      client.makeUnaryRequest(path('Insert'), same, same, bytes, done);
    },
    check: (bytes) => fromBinary(db.WatchResponseSchema, bytes),
  },
  etcd: {
    watch(client) {
      const stream = client.makeBidiStreamRequest('/etcdserverpb.Watch/Watch', same, same);
      stream.write(etcdWatch('fanout', 'fanouu'));
      return stream;
    },
    write(client, text, done) {
      client.makeUnaryRequest('/etcdserverpb.KV/Put', same, same, etcdPut('fanout', text), done);
    },
  },
};

const { watch, write, check } = kinds[kind];
const options = { 'grpc.use_local_subchannel_pool': 1 };
const connect = () => new grpc.Client(address, grpc.credentials.createInsecure(), options);
const clients = Array.from({ length: Number(watchers) }, connect);
let first = true;
let arrived = 0;
const streams = clients.map((client) => {
  const stream = watch(client);
  stream.on('data', (bytes) => {
    const now = performance.timeOrigin + performance.now();
    // The first message of each kind is decoded as a whole: a load test must not count noise.
    if (first && check) check(bytes);
    first = false;
    for (const [, at] of bytes.toString('latin1').matchAll(marker)) {
      arrived++;
      if (Number(at) > 0) times.push(now - Number(at));
    }
  });
  stream.on('error', (error) => {
    if (error.code !== grpc.status.CANCELLED) throw error;
  });
  return stream;
});
await pause(1_000);

const writer = connect();
const pad = 'Prefers deliveries before noon; leave at the loading dock.'.repeat(3);
let sent = 0;
let refused = 0;
let failed;
const started = performance.now();
while (performance.now() - started < Number(seconds) * 1_000) {
  const due = ((performance.now() - started) / 1_000) * Number(perSecond);
  for (; sent < due; sent++) {
    const at = (performance.timeOrigin + performance.now()).toFixed(3);
    write(writer, `{"at":${at},"number":${sent},"note":"${pad}"}`, noteEnd);
  }
  await pause(1);
}
const tookSeconds = (performance.now() - started) / 1_000;
const wanted = () => (sent - refused) * clients.length;
for (let i = 0; arrived < wanted() && i < 100; i++) await pause(100);
if (failed) throw failed;
if (arrived !== wanted()) throw new Error(`${arrived} of ${wanted()} changes arrived`);
const paced = (sent - refused) / tookSeconds;
times.sort((a, b) => a - b);
const at = (share) => times[Math.floor((times.length - 1) * share)];
console.log(JSON.stringify({ paced, p50: at(0.5), p99: at(0.99), changes: arrived }));
for (const stream of streams) stream.cancel();
for (const client of [...clients, writer]) client.close();

/** A server may shed load; what it refused is not counted as done. */
function noteEnd(error) {
  if (error?.code === grpc.status.RESOURCE_EXHAUSTED) refused++;
  else if (error) failed ??= error;
}

function path(method) {
  return `/millrace.db.v1.Database/${method}`;
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
