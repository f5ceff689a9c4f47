/**
 * The handler that every queue calls: responds at once and counts. A separate process, controlled by
 * messages: `reset` starts a count, `report` returns it.
 */
import { createServer } from 'node:http';

const marker = Buffer.from('"at":');
let count = 0;
let lastAt = 0;
let waits = [];

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    lastAt = now();
    count++;
    noteWait(Buffer.concat(chunks));
    response.end();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));

process.on('message', ({ kind }) => {
  if (kind === 'reset') {
    count = 0;
    waits = [];
  }
  const sorted = waits.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.floor((sorted.length - 1) * share)];
  process.send({ kind, count, lastAt, p50: at(0.5), p99: at(0.99) });
});

function noteWait(body) {
  const at = body.indexOf(marker);
  if (at < 0) return;
  const sentAt = Number.parseFloat(body.toString('latin1', at + marker.length, at + 25));
  if (sentAt > 0) waits.push(now() - sentAt);
}

function now() {
  return performance.timeOrigin + performance.now();
}
