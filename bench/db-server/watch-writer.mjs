/** Writes at a steady pace; each record says when it was sent, in microseconds of the system. */
import { connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeOf } from './messages.mjs';

const [kind, url, perSecond, seconds] = process.argv.slice(2);
const pad = 'Prefers deliveries before noon; leave at the loading dock.'.repeat(3);
const refused = '8';
const accepted = [];
let underWay = 0;

const session = connect(url);
session.on('error', fail);
await new Promise((resolve) => session.once('connect', resolve));
const started = performance.now();
let sent = 0;
while (performance.now() - started < Number(seconds) * 1_000) {
  const due = ((performance.now() - started) / 1_000) * Number(perSecond);
  for (; sent < due; sent++) send(sent);
  await sleep(1);
}
const tookSeconds = (performance.now() - started) / 1_000;
while (underWay > 0) await sleep(10);
console.log(JSON.stringify({ accepted, tookSeconds }));
session.close();

function send(number) {
  const at = process.hrtime.bigint() / 1_000n;
  const { path, body } = writeOf(kind, `{"at":${at},"number":${number},"note":"${pad}"}`);
  const headers = { ':method': 'POST', ':path': path, te: 'trailers' };
  const stream = session.request({ ...headers, 'content-type': 'application/grpc' });
  let status;
  const noteStatus = (fields) => (status = fields['grpc-status'] ?? status);
  underWay++;
  stream.on('response', noteStatus);
  stream.on('trailers', noteStatus);
  stream.on('error', fail);
  stream.on('close', () => {
    underWay--;
    // A server may shed load; what it refused is not counted as done.
    if (status === '0') accepted.push(number);
    else if (status !== refused) fail(new Error(`a write ended with status ${status}`));
  });
  stream.resume();
  stream.end(body);
}

function fail(error) {
  console.error(error);
  process.exit(1);
}
