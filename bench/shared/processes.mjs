/** Servers that a benchmark starts and stops. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';

export function hasCommand(name) {
  try {
    execFileSync('which', [name], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Asks the process to end and waits until it has. */
export async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

/** For servers that cannot choose a port by themselves. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}
