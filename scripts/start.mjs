/** `npm start`: from a fresh clone to a running Millrace. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';

prepare();
const ctl = join(root, 'bin', 'ctl');
const child = spawn(process.execPath, [ctl, 'up', ...process.argv.slice(2)], { stdio: 'inherit' });

// A terminal sends Ctrl-C to the whole group, so `ctl up` hears it too and drains; this process
// only waits. Signals sent to npm alone are passed on.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
