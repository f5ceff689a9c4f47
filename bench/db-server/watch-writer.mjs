/** Writes at a steady pace; each record says when it was sent, in microseconds of the system. */
import { setTimeout as sleep } from 'node:timers/promises';
import { writeOf } from './messages.mjs';
import { RawConnection } from './raw-streams.mjs';

const [kind, url, perSecond, seconds] = process.argv.slice(2);
const pad = 'Prefers deliveries before noon; leave at the loading dock.'.repeat(3);
const accepted = [];
let underWay = 0;
let isOver = false;

const connection = new RawConnection(url, { onData: () => undefined, onEnd: fail });
const started = performance.now();
let sent = 0;
while (performance.now() - started < Number(seconds) * 1_000) {
  const due = ((performance.now() - started) / 1_000) * Number(perSecond);
  for (; sent < due; sent++) send(sent);
  await sleep(1);
}
const tookSeconds = (performance.now() - started) / 1_000;
while (underWay > 0) await sleep(10);
if (accepted.length === 0) fail(new Error('all writes were refused'));
console.log(JSON.stringify({ accepted, tookSeconds }));
isOver = true;
connection.destroy();

function send(number) {
  const at = process.hrtime.bigint() / 1_000n;
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
