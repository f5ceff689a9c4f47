/**
 * Writes at a steady pace; each record says when it was sent, in microseconds of the system. Those
 * of the first part say 0: while they are written, this process and the watchers' become warm.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { writeOf } from './messages.mjs';
import { RawConnection } from './raw-streams.mjs';

const [kind, url, perSecond, warmUpSeconds, seconds] = process.argv.slice(2);
const pad = 'Prefers deliveries before noon; leave at the loading dock.'.repeat(3);
const accepted = [];
let underWay = 0;
let isOver = false;

const connection = new RawConnection(url, { onData: () => undefined, onEnd: fail });
let sent = 0;
await write(Number(warmUpSeconds), () => 0n);
const firstCounted = sent;
const tookSeconds = await write(Number(seconds), () => process.hrtime.bigint() / 1_000n);
while (underWay > 0) await sleep(10);
const counted = accepted.filter((number) => number >= firstCounted).length;
if (counted === 0) fail(new Error('all writes were refused'));
console.log(JSON.stringify({ accepted, counted, tookSeconds }));
isOver = true;
connection.destroy();

/** Resolves with how many seconds it took. */
async function write(forSeconds, timeOf) {
  const started = performance.now();
  const before = sent;
  const elapsed = () => (performance.now() - started) / 1_000;
  while (elapsed() < forSeconds) {
    const due = before + elapsed() * Number(perSecond);
    for (; sent < due; sent++) send(sent, timeOf());
    await sleep(1);
  }
  return elapsed();
}

function send(number, at) {
  underWay++;
  connection.call(
    writeOf(kind, `{"at":${at},"number":${number},"note":"${pad}"}`),
    (isAccepted) => {
      underWay--;
      // A server may shed load; what it refused is not counted as done.
      if (isAccepted) accepted.push(number);
    },
  );
}

function fail(error) {
  if (isOver) return;
  console.error(error);
  process.exit(1);
}
