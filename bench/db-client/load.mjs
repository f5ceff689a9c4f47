/** One load of one contestant, in a process of its own: the rate, and the CPU time of the client. */
import { contestants } from './contestants.mjs';

const [kind, target, load, records, seconds] = process.argv.slice(2);
const inFlight = { insert: 64, read: 64, bulk: 4, find: 64, fill: 4 }[load];
const batch = 500;
// Enough for the compiler of V8, whose work is not that of a running service.
const warmUpCalls = { insert: 5_000, read: 5_000, bulk: 20, find: 300 };
const client = await contestants[kind](JSON.parse(target));
const numbersFrom = (from, count) => Array.from({ length: count }, (_, i) => from + i);
let next = 0;

const calls = {
  insert: () => client.insert(next++),
  read: () => client.read(next++ % Number(records)),
  bulk: () => client.bulk(numbersFrom((next += batch), batch)),
  find: () => client.find(`Port ${String(next++ % 1_000).padStart(3, '0')}`),
};

if (load === 'fill') {
  await client.prepare?.();
  const worker = async () => {
    while (next < Number(records)) {
      const from = next;
      next += batch;
      await client.fill(numbersFrom(from, Math.min(batch, Number(records) - from)));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  report({});
} else if (!client[load]) report({});
else {
  // A short run is warmed up for a short time.
  const share = Math.min(1, Number(seconds));
  await runFor(0.5 * share, warmUpCalls[load] * share);
  const before = process.cpuUsage();
  const { count, ms } = await runFor(Number(seconds));
  const { user, system } = process.cpuUsage(before);
  const done = count * (load === 'bulk' ? batch : 1);
  report({ perSecond: (done / ms) * 1_000, cpuUs: (user + system) / done });
}
await client.close();

async function runFor(howLong, minCount = 0) {
  const started = performance.now();
  const stopAt = started + howLong * 1_000;
  let count = 0;
  const worker = async () => {
    while (performance.now() < stopAt || count < minCount) {
      await calls[load]();
      count++;
      // A synchronous client gives no turn to others, and has no use for them.
      if (kind === 'sqlite' && count % 100 === 0) await new Promise(setImmediate);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return { count, ms: performance.now() - started };
}

function report(result) {
  console.log(JSON.stringify(result));
}
