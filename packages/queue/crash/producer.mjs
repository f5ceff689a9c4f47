// A producer as a process of its own: prints a line with the ids of each batch that was accepted.
// usage: producer.mjs TOKEN URL...
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { connectQueue, defineTasks } from '@millrace/worker';

const [token, ...urls] = process.argv.slice(2);
const queue = connectQueue({ urls, token }, defineTasks());

for (;;) {
  const count = systemRandom.integer(1, 3);
  const items = Array.from({ length: count }, (_, n) => ({ ref: 'work', payload: n }));
  try {
    const results = await queue.submitMany(items, { queue: 'crash' });
    const ids = results.flatMap(({ id }) => id ?? []);
    // A write to a pipe is synchronous, so a killed process has reported what was accepted.
    if (ids.length > 0) process.stdout.write(`${JSON.stringify({ ids })}\n`);
  } catch {
    // A server that is down is part of the campaign.
  }
  await systemClock.sleep(25);
}
