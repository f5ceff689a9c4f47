/**
 * Many watchers of one writer, which works at a steady pace in a process of its own. The time of a
 * change runs from the moment the writer sends it to the moment a watcher has its bytes: commit and
 * fan-out together. Both processes read the same monotonic clock.
 *
 * What is written in the first second is not timed, but must arrive like the rest: else the tail
 * would be that of two processes whose code is being compiled.
 *
 * The streams share a few connections and only the marks that the writer put in are looked for, in
 * the same way for each server: the servers are measured, not a client's decoder.
 */
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { watchOf } from './messages.mjs';
import { RawConnection } from './raw-streams.mjs';

const [kind, url, watchers, perSecond, seconds] = process.argv.slice(2);
const connections = 4;
const mark = Buffer.from('"at":');
const numberMark = Buffer.from(',"number":');
const [comma, quote] = [0x2c, 0x22];
const warmUpSeconds = Math.min(1, Number(seconds));
const mostCommits = Math.ceil(Number(perSecond) * (warmUpSeconds + Number(seconds)) * 2);

/** One watcher: which commits it has, and how long each took to come. */
class Watcher {
  #rest = Buffer.alloc(0);
  #has = new Uint8Array(mostCommits);
  count = 0;

  has(number) {
    return this.#has[number] === 1;
  }

  take(chunk) {
    const now = microseconds();
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    let at = 0;
    for (;;) {
      const from = bytes.indexOf(mark, at);
      const middle = from === -1 ? -1 : commaFrom(bytes, from + mark.length);
      const to = middle === -1 ? -1 : commaFrom(bytes, middle + numberMark.length);
      if (to === -1) return this.#keep(bytes, from === -1 ? markStart(bytes, at) : from);
      const number = wholeNumber(bytes, middle + numberMark.length, to);
      if (this.has(number)) fail(new Error(`commit ${number} came twice`));
      this.#has[number] = 1;
      this.count++;
      const sentAt = wholeNumber(bytes, from + mark.length, middle);
      if (sentAt > 0) times[timeCount++] = (now - sentAt) / 1_000;
      at = to;
    }
  }

  /** What is cut off goes on in the next chunk. */
  #keep(bytes, from) {
    this.#rest = from < bytes.length ? Buffer.from(bytes.subarray(from)) : noBytes;
  }
}

const noBytes = Buffer.alloc(0);
const times = new Float64Array(mostCommits * Number(watchers));
let timeCount = 0;
let isOver = false;
const all = [];
const sessions = await Promise.all(Array.from({ length: connections }, (_, i) => openWatchers(i)));
await sleep(500);

const writer = fileURLToPath(new URL('watch-writer.mjs', import.meta.url));
const args = [writer, kind, url, perSecond, warmUpSeconds, seconds];
const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 26 });
const { accepted, counted, tookSeconds } = JSON.parse(stdout);
for (let i = 0; i < 100 && all.some(({ count }) => count < accepted.length); i++) await sleep(100);
for (const watcher of all) {
  const missing = accepted.filter((number) => !watcher.has(number));
  if (missing.length > 0 || watcher.count !== accepted.length) {
    fail(new Error(`a watcher has ${watcher.count} of ${accepted.length} commits`));
  }
}
if (timeCount !== counted * all.length) fail(new Error(`${timeCount} changes were timed`));
const sorted = times.subarray(0, timeCount).sort();
const at = (share) => sorted[Math.floor((sorted.length - 1) * share)];
const { user, system } = process.cpuUsage();
console.log(
  JSON.stringify({
    paced: counted / tookSeconds,
    p50: at(0.5),
    p99: at(0.99),
    changes: sorted.length,
    clientCpuSeconds: (user + system) / 1e6,
  }),
);
isOver = true;
for (const session of sessions) session.destroy();

/** The watchers whose turn it is at one of the connections. */
async function openWatchers(place) {
  const byStream = new Map();
  const onData = (id, bytes) => byStream.get(id).take(bytes);
  const connection = new RawConnection(url, { onData, onEnd: fail });
  const opening = [];
  for (let i = place; i < Number(watchers); i += connections) {
    const watcher = new Watcher();
    all.push(watcher);
    const { id, begun } = connection.open(watchOf(kind));
    byStream.set(id, watcher);
    opening.push(begun);
  }
  await Promise.all(opening);
  return connection;
}

/** Where a mark may begin that goes on in the next chunk. */
function markStart(bytes, least) {
  for (let at = Math.max(least, bytes.length - mark.length + 1); at < bytes.length; at++) {
    if (bytes[at] === quote) return at;
  }
  return bytes.length;
}

function commaFrom(bytes, start) {
  for (let at = start; at < bytes.length; at++) if (bytes[at] === comma) return at;
  return -1;
}

function wholeNumber(bytes, from, to) {
  let value = 0;
  for (let at = from; at < to; at++) value = value * 10 + bytes[at] - 0x30;
  return value;
}

function microseconds() {
  return Number(process.hrtime.bigint()) / 1_000;
}

function fail(error) {
  if (isOver) return;
  console.error(error);
  process.exit(1);
}
