/** Calls /healthz every 20 ms on a connection of its own until it is asked for its report. */
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const url = `${process.argv[2]}/healthz`;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const times = [];
let failed = 0;
let isOver = false;

process.once('message', () => {
  isOver = true;
});

while (!isOver) {
  const startedAt = performance.now();
  const isOk = await call();
  if (isOk) times.push(performance.now() - startedAt);
  else failed++;
  await sleep(20);
}
times.sort((a, b) => a - b);
process.send({
  count: times.length,
  failed,
  p50: times[times.length >> 1],
  p99: times[Math.floor(times.length * 0.99)],
  slowest: times.at(-1),
});
agent.destroy();

function call() {
  return new Promise((resolve) => {
    get(url, { agent, timeout: 30_000 }, (answer) => {
      answer.resume();
      answer.once('end', () => resolve(answer.statusCode === 200));
    })
      .once('timeout', () => resolve(false))
      .once('error', () => resolve(false));
  });
}
