import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isAlive } from './is-alive.js';

test('a process runs until it ends', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  expect(isAlive(child.pid!)).toBe(true);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(isAlive(child.pid!)).toBe(false);
});

test.each([0, -1, 1.5, Number.NaN])('%s is no process', (pid) => {
  expect(isAlive(pid)).toBe(false);
});

test.runIf(existsSync('/proc/self/stat'))(
  'a process that ended does not run, although its parent has not reaped it',
  async () => {
    // The shell becomes sleep, which reaps nobody.
    const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60']);
    try {
      const [output] = (await once(parent.stdout, 'data')) as [Buffer];
      const pid = Number(output.toString());
      await expect.poll(() => isAlive(pid)).toBe(false);
      expect(process.kill(pid, 0)).toBe(true);
    } finally {
      parent.kill('SIGKILL');
    }
  },
);
