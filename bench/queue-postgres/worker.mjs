/**
 * One server process of a contestant: `fill` stores tasks in batches of 500, `work` processes tasks
 * until all servers together have done a number of them, or `end` arrives. The handler does nothing:
 * only the queue is measured.
 */
import { contestants } from './contestants.mjs';

const [kind, url, loops] = process.argv.slice(2);
const contestant = await contestants[kind](url, { loops: Number(loops) });
let before;

async function take({ act, count, batch }) {
  const acts = {
    fill: async () => {
      for (let left = count; left > 0; left -= batch) {
        await contestant.submit(Math.min(left, batch));
      }
    },
    work: async () => {
      before = { cpu: process.cpuUsage(), done: contestant.done };
      await contestant.work();
    },
    count: async () => undefined,
    rest: () => contestant.rest(),
    close: () => contestant.close(),
  };
  await acts[act]();
  const { user, system } = process.cpuUsage(before?.cpu);
  process.send({ act, done: contestant.done - (before?.done ?? 0), cpuUs: user + system });
  if (act === 'close') process.exit(0);
}

// A failure exits the process, which its parent detects.
process.on('message', (message) => void take(message));
process.send({ act: 'ready' });
