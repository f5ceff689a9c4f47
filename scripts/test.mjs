/** `npm test`: installs, builds and runs every test. Arguments go to vitest. */
import { bin, prepare, run } from './prepare.mjs';

prepare();
run(process.execPath, [bin('vitest'), 'run', ...process.argv.slice(2)]);
