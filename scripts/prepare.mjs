/**
 * Makes a fresh clone ready: installs unless what the lockfile names is there, builds
 * what changed since the last build. Plain JavaScript on Node alone, because nothing else is
 * there yet when it runs.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stamp = join(root, 'node_modules', '.millrace-installed');
const oldestNode = [20, 19, 0];

/** Installs and builds, or ends the process with the failing command's exit code. */
export function prepare() {
  demandNode();
  install();
  build();
}

export function install() {
  const lock = readFileSync(join(root, 'package-lock.json'), 'utf8');
  const digest = createHash('sha256').update(lock).digest('hex');
  const wanted = `${digest} ${process.platform}-${process.arch}\n`;
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  if (!isInstalled(JSON.parse(lock).packages)) {
    say('Installing dependencies (npm ci) ...');
    // --include=dev: NODE_ENV=production in someone's shell must not leave the compiler out.
    run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']);
  }
  writeFileSync(stamp, wanted);
}

/**
 * Whether somebody has just run `npm ci` or `npm install` by hand: npm notes what it has put
 * where. Of what is optional, all that is made for this very machine must be there.
 */
function isInstalled(packages) {
  const note = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(note)) return false;
  const there = JSON.parse(readFileSync(note, 'utf8')).packages;
  return Object.entries(packages).every(([path, { version, optional, os, cpu, libc }]) => {
    if (!path.startsWith('node_modules/')) return true;
    const isForUs = os?.includes(process.platform) && cpu?.includes(process.arch) && !libc;
    return (optional && !isForUs) || there[path]?.version === version;
  });
}

export function build() {
  run(process.execPath, [bin('typescript', 'tsc'), '--build', 'tsconfig.json']);
  copyDocsAssets();
  run(process.execPath, [join(root, 'packages', 'dashboard', 'scripts', 'build.mjs')]);
  run(process.execPath, [join(root, 'scripts', 'bundle.mjs')]);
}

/** The page that shows an API: copied, because the package would report each installation. */
function copyDocsAssets() {
  const from = join(root, 'node_modules', 'swagger-ui-dist');
  const to = join(root, 'packages', 'kit', 'dist', 'assets', 'swagger-ui');
  mkdirSync(to, { recursive: true });
  for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png', 'LICENSE']) {
    copyFileSync(join(from, name), join(to, name));
  }
}

/** Runs a command in the repository, shown as it goes; ends this process if it fails. */
export function run(command, args, env = {}) {
  const result = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  if (result.error) {
    say(`Could not run ${command}: ${result.error.message}`);
    process.exit(1);
  }
  if (result.status !== 0) process.exit(result.status ?? 1);
}

/** The script behind a package's command, so that it runs on this very Node. */
export function bin(packageName, command = packageName) {
  const folder = join(root, 'node_modules', packageName);
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const path = typeof manifest.bin === 'string' ? manifest.bin : manifest.bin[command];
  return join(folder, path);
}

export function say(text) {
  process.stderr.write(`${text}\n`);
}

function demandNode() {
  const have = process.versions.node.split('.').map(Number);
  for (let i = 0; i < oldestNode.length; i++) {
    if (have[i] > oldestNode[i]) return;
    if (have[i] < oldestNode[i]) {
      say(`Millrace needs Node ${oldestNode.join('.')} or later; this is ${process.version}.`);
      process.exit(2);
    }
  }
}
