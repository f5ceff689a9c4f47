/**
 * `npm test`: installs, builds and runs every test, campaigns at a size that finds every planted
 * fault. `npm run test:campaigns` runs the tests that have a larger size, at full size. Further
 * arguments go to vitest.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bin, prepare, root, run } from './prepare.mjs';

const hasTwoSizes = /\/support\/campaign\.js|import \{ appearancesOf\b/;
const args = process.argv.slice(2);
const isFull = args[0] === '--campaigns';
const given = isFull ? [...campaignFiles(), ...args.slice(1)] : args;
prepare();
run(
  process.execPath,
  [bin('vitest'), 'run', ...given],
  isFull ? { MILLRACE_CAMPAIGN: 'full' } : {},
);

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
