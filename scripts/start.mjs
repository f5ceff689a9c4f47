/** `npm start`: from a fresh clone to a running Millrace. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';

prepare();
const ctl = join(root, 'bin', 'ctl');
// In a group of its own, so that only this process sends it signals; the channel closes when this
// process is gone, however it ended.
const child = spawn(process.execPath, [ctl, 'up', ...process.argv.slice(2)], {
  stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  detached: true,
});

// The terminal sends Ctrl-C to npm and to this process, and npm passes it on as well: both are one
// and the same, and two would cut the drain short.
const sameSignalMs = 500;
let lastAt = -Infinity;
const passOn = (signal) => {
  const now = performance.now();
  if (now - lastAt < sameSignalMs) return;
  lastAt = now;
  child.kill(signal);
};
process.on('SIGINT', () => passOn('SIGINT'));
process.on('SIGTERM', () => passOn('SIGTERM'));
process.on('SIGHUP', () => passOn('SIGTERM'));
child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
