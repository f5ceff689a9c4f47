/**
 * Many watchers of one writer, which works at a steady pace in a process of its own. The time of a
 * change runs from the moment the writer sends it to the moment a watcher has its bytes: commit and
 * fan-out together. Both processes read the same monotonic clock.
 *
 * The streams share a few connections and only the marks that the writer put in are looked for, in
 * the same way for each server: the servers are measured, not a client's decoder.
 */
import { execFile } from 'node:child_process';
import { connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { watchOf } from './messages.mjs';

const [kind, url, watchers, perSecond, seconds] = process.argv.slice(2);
const connections = 4;
const windowBytes = 16 * 2 ** 20;
const [mark, end] = [Buffer.from('"at":'), Buffer.from(',"note"')];

const numberMark = ',"number":';

/** One watcher: which commits it has, and how long each took to come. */
class Watcher {
  #rest = Buffer.alloc(0);
  #has = new Uint8Array(Number(perSecond) * Number(seconds) * 2);
  count = 0;

  constructor(session) {
    const { path, body, isOpen } = watchOf(kind);
    const headers = { ':method': 'POST', ':path': path, te: 'trailers' };
    this.stream = session.request({ ...headers, 'content-type': 'application/grpc' });
    this.stream.on('data', (chunk) => this.#take(chunk));
    this.stream.on('error', fail);
    this.stream.on('end', () => isOver || fail(new Error('a watch has ended')));
    this.opened = new Promise((resolve) => this.stream.once('response', resolve));
    if (isOpen) this.stream.write(body);
    else this.stream.end(body);
  }

  has(number) {
    return this.#has[number] === 1;
  }

  #take(chunk) {
    const now = microseconds();
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    let at = 0;
    for (;;) {
      const from = bytes.indexOf(mark, at);
      const to = from === -1 ? -1 : bytes.indexOf(end, from);
      if (to === -1) {
        // What is cut off goes on in the next chunk.
        this.#rest = bytes.subarray(from === -1 ? Math.max(at, bytes.length - mark.length) : from);
        return;
      }
      const comma = bytes.indexOf(0x2c, from);
      const number = wholeNumber(bytes, comma + numberMark.length, to);
      if (this.has(number)) fail(new Error(`commit ${number} came twice`));
      this.#has[number] = 1;
      this.count++;
      times.push((now - wholeNumber(bytes, from + mark.length, comma)) / 1_000);
      at = to;
    }
  }
}

const times = [];
let isOver = false;
const sessions = Array.from({ length: connections }, () => {
  const session = connect(url, { settings: { initialWindowSize: windowBytes } });
  session.on('error', fail);
  session.on('connect', () => session.setLocalWindowSize(windowBytes));
  return session;
});
const all = Array.from(
  { length: Number(watchers) },
  (_, i) => new Watcher(sessions[i % connections]),
);
await Promise.all(all.map(({ opened }) => opened));
await sleep(500);

const writer = fileURLToPath(new URL('watch-writer.mjs', import.meta.url));
const args = [writer, kind, url, perSecond, seconds];
const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 26 });
const { accepted, tookSeconds } = JSON.parse(stdout);
for (let i = 0; i < 100 && all.some(({ count }) => count < accepted.length); i++) await sleep(100);
for (const watcher of all) {
  const missing = accepted.filter((number) => !watcher.has(number));
  if (missing.length > 0 || watcher.count !== accepted.length) {
    fail(new Error(`a watcher has ${watcher.count} of ${accepted.length} commits`));
  }
}
const sorted = Float64Array.from(times).sort();
const at = (share) => sorted[Math.floor((sorted.length - 1) * share)];
const { user, system } = process.cpuUsage();
console.log(
  JSON.stringify({
    paced: accepted.length / tookSeconds,
    p50: at(0.5),
    p99: at(0.99),
    changes: sorted.length,
    clientCpuSeconds: (user + system) / 1e6,
  }),
);
isOver = true;
for (const session of sessions) session.destroy();

function wholeNumber(bytes, from, to) {
  let value = 0;
  for (let at = from; at < to; at++) value = value * 10 + bytes[at] - 0x30;
  return value;
}

function microseconds() {
  return Number(process.hrtime.bigint() / 1_000n);
}

function fail(error) {
  if (isOver) return;
  console.error(error);
  process.exit(1);
}
