/**
 * The process that is killed. It says `ready`, waits for its orders on one line of its input and
 * works until the end comes. Whatever goes wrong before that ends it with an error.
 */
import { createInterface } from 'node:readline';
import { open, restore } from '../dist/index.js';
import { seededRandom } from '@millrace/kit/random';
import { Ledger } from './ledger.mjs';
import { collectionsOf } from './schema.mjs';
import { setUp, startTasks } from './tasks.mjs';

const lines = createInterface({ input: process.stdin });
console.log('ready');
for await (const line of lines) {
  await work(JSON.parse(line));
  break;
}

async function work(orders) {
  // Not before: on a busy machine the kill came before any answer, and proved nothing.
  const ledger = new Ledger(orders.ledger, () => console.log('working'));
  if (orders.special === 'restore') {
    const number = ledger.sent('restore', {});
    ledger.answered(number, await restore(orders.files, orders.directory));
    console.log('restored');
    return new Promise(() => setInterval(() => undefined, 1_000));
  }
  const collections = collectionsOf(orders.withPassing);
  const db = await open(orders.directory, { collections });
  await setUp(db);
  await Promise.all(
    startTasks(db, {
      ledger,
      random: seededRandom(orders.seed),
      round: orders.round,
      special: orders.special,
      directory: orders.directory,
    }),
  );
}
