import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const most = 300;
const mostMs = 1_500;

/** How long this disk takes to make 4 KiB durable, in milliseconds. */
export function measureFsync(directory) {
  const file = join(directory, 'fsync-probe');
  const block = Buffer.alloc(4_096, 1);
  const handle = openSync(file, 'w');
  const times = [];
  const stopAt = performance.now() + mostMs;
  try {
    while (times.length < most && performance.now() < stopAt) {
      writeSync(handle, block);
      const started = performance.now();
      fsyncSync(handle);
      times.push(performance.now() - started);
    }
  } finally {
    closeSync(handle);
    rmSync(file);
  }
  times.sort((a, b) => a - b);
  return { medianMs: times[times.length >> 1], p99Ms: times[Math.floor(times.length * 0.99)] };
}
