/**
 * Builds the dashboard into dist/site. Does nothing when no source has changed since the last
 * build, so that it can run before every start and every test.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { docsFolder } from './docs.mjs';

const home = dirname(dirname(fileURLToPath(import.meta.url)));
const stamp = join(home, 'dist', 'site.sha256');
const site = join(home, 'dist', 'site');

/** Resolves when dist/site is up to date with the sources. */
export async function buildDashboard({ force = false } = {}) {
  const wanted = hashOfSources();
  if (!force && isBuilt(wanted)) return { built: false, site };
  const { build } = await import('vite');
  // Into a folder of its own first: concurrent builds must not mix, and readers see a whole one.
  const outDir = `${site}.${process.pid}`;
  const configFile = join(home, 'vite.config.ts');
  await asProduction(() =>
    build({ root: home, configFile, mode: 'production', logLevel: 'warn', build: { outDir } }),
  );
  putInPlace(outDir);
  writeFileSync(stamp, wanted);
  return { built: true, site };
}

/** With the NODE_ENV of a test runner the bundle would contain React's development build. */
async function asProduction(work) {
  const { NODE_ENV: before } = process.env;
  process.env.NODE_ENV = 'production';
  try {
    return await work();
  } finally {
    if (before === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = before;
  }
}

function putInPlace(built) {
  rmSync(stamp, { force: true });
  for (let triesLeft = 5; ; triesLeft--) {
    try {
      rmSync(site, { recursive: true, force: true });
      renameSync(built, site);
      return;
    } catch (error) {
      // A concurrent build was moved there in between; the later one wins.
      if (triesLeft === 0) throw error;
    }
  }
}

function isBuilt(wanted) {
  if (!existsSync(join(site, 'index.html'))) return false;
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted;
}

function hashOfSources() {
  const hash = createHash('sha256');
  const lockfile = join(home, '..', '..', 'package-lock.json');
  const files = [
    ...['index.html', 'vite.config.ts', 'package.json'].map((name) => join(home, name)),
    // The lockfile decides which libraries are in the bundle.
    ...(existsSync(lockfile) ? [lockfile] : []),
    ...filesBelow(join(home, 'src')),
    // The bundle contains the client and the operations of the contract.
    ...filesBelow(join(home, '..', 'client', 'src')),
    ...filesBelow(join(home, '..', 'contract', 'src')),
    ...filesBelow(docsFolder).filter((file) => file.endsWith('.md')),
  ];
  for (const file of files) {
    hash.update(relative(home, file).split(sep).join('/')).update('\0');
    hash.update(readFileSync(file)).update('\0');
  }
  return `${hash.digest('hex')}\n`;
}

function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.test(-support)?\.ts$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { built } = await buildDashboard({ force: process.argv.includes('--force') });
  process.stderr.write(built ? 'Built the dashboard.\n' : '');
}
