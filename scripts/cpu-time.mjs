/**
 * A vitest setup file, used with MILLRACE_DURATIONS: notes the CPU seconds that this worker and its
 * child processes spend on a test file. Unlike time, they are nearly the same on a busy machine.
 * Linux only; processes that left the tree of the worker, such as a tmux server, do not count.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll } from 'vitest';

const ticksPerSecond = 100;
const start = treeSeconds();

// oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what a hook uses
afterAll(({}, suite) => {
  if (start !== undefined) suite.file.meta.cpuSeconds = treeSeconds() - start;
});

/** CPU seconds of this process, its descendants, and their children that were waited for. */
function treeSeconds() {
  if (process.platform !== 'linux') return undefined;
  const children = new Map();
  const ticks = new Map();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      // The name of the program stands in brackets, and may hold anything.
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ');
      ticks.set(
        pid,
        fields.slice(11, 15).reduce((sum, each) => sum + Number(each), 0),
      );
      children.set(fields[1], [...(children.get(fields[1]) ?? []), pid]);
    } catch {
      // It has ended since the folder was read.
    }
  }
  const sum = (pid) =>
    (children.get(pid) ?? []).reduce((total, child) => total + sum(child), ticks.get(pid) ?? 0);
  return sum(String(process.pid)) / ticksPerSecond;
}
