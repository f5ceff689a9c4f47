/**
 * `npm test`: installs, builds and runs every test, campaigns at a size that finds every planted
 * fault. `npm run test:campaigns` runs the tests that have a larger size, at full size. Further
 * arguments go to vitest.
 */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bin, prepare, root, run, say } from './prepare.mjs';

const hasTwoSizes = /\/support\/campaign\.js|import \{ appearancesOf\b/;
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

/** Test files that ask for the size of a campaign, or for the appearances of the dashboard. */
function campaignFiles() {
  const folders = [
    'test',
    ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}`),
  ];
  return folders
    .flatMap((folder) => testsIn(folder))
    .filter((file) => hasTwoSizes.test(readFileSync(join(root, file), 'utf8')));
}

function testsIn(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return /^(?:node_modules|dist)$/.test(entry.name) ? [] : testsIn(path);
    return entry.name.endsWith('.test.ts') ? [path] : [];
  });
}
