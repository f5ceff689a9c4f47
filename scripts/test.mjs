/**
 * `npm test`: installs, builds and tests each behaviour once, campaigns at a size that finds every
 * planted fault. `npm run test:campaigns` runs the files of which that leaves something out, all
 * of it and at full size. Further arguments go to vitest.
 */
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { campaignFiles } from './campaign-tests.mjs';
import { bin, prepare, run, say } from './prepare.mjs';

const args = process.argv.slice(2);
const isFull = args[0] === '--campaigns';
const given = isFull ? [...campaignFiles(), ...args.slice(1)] : args;
prepare();
run(process.execPath, [bin('vitest'), 'run', ...given], {
  TMPDIR: temporaryFolder(),
  ...(isFull && { MILLRACE_CAMPAIGN: 'full' }),
});

/**
 * The folder for temporary files of this run. It goes with the run, also with one that is
 * interrupted, and the run names what its tests have left there.
 */
function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'mr-'));
  // PostgreSQL runs as another user where the tests run as root.
  chmodSync(folder, 0o755);
  // With these the end of vitest is waited for.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => undefined);
  process.once('exit', () => {
    // A browser and a PostgreSQL end with their worker, and only then let go of their files.
    const left = readdirSync(folder).filter((name) => !/^mr-browser-|-postgres-/.test(name));
    if (left.length > 0) say(`Left in the temporary folder: ${left.join(' ')}`);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return folder;
}
