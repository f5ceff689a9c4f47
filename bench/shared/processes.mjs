/** Servers that a benchmark starts and stops. */
import { execFileSync, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { constants } from 'node:os';
import { join } from 'node:path';

const running = new Set();

/** Starts a program that ends with the benchmark, also when that is interrupted. */
export function startProgram(command, args, options) {
  return track(spawn(command, args, options));
}

/** The same for a module with a message channel. */
export function startModule(file, args = [], options = {}) {
  return track(fork(file, args, options));
}

function track(child) {
  endWithUs();
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

let isWatching = false;

function endWithUs() {
  if (isWatching) return;
  isWatching = true;
  process.on('exit', () => {
    for (const child of running) child.kill('SIGTERM');
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // A benchmark with a listener of its own stops in its own time.
      if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
    });
  }
}

/** For the log of a server: under load it would fill the screen. */
export function logFile(directory, name) {
  return openSync(join(directory, `${name}.log`), 'a');
}

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

/** CPU time of a process so far, user and system, with all its threads. Linux only. */
export function cpuUsOf(pid) {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const tickUs = 10_000;
  return (Number(fields[11]) + Number(fields[12])) * tickUs;
}

/** For servers that cannot choose a port by themselves. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}
