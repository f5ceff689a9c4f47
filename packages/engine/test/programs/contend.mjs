/**
 * Takes part in races for directories. Each line of input is `take <directory> <time>`, `open
 * <directory>` or `release`; each is answered by one line: `won`, `lost <why>` or `released`.
 */
import { createInterface } from 'node:readline';
import { systemClock } from '@millrace/kit/clock';
import { open } from '../../dist/index.js';
import { DirectoryLock } from '../../dist/storage/file/directory.js';

let held;

function waitUntil(time) {
  while (performance.timeOrigin + performance.now() < time);
}

console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  const [word, directory, time] = line.split(' ');
  try {
    if (word === 'take') {
      waitUntil(Number(time));
      held = new DirectoryLock(directory, systemClock);
    } else if (word === 'open') {
      const db = await open(directory);
      held = { release: () => db.close() };
    } else {
      await held?.release();
      held = undefined;
    }
    console.log(word === 'release' ? 'released' : 'won');
  } catch (error) {
    console.log(`lost ${error.name}: ${error.message}`);
  }
}
