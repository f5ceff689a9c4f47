import { execFile } from 'node:child_process';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { promisify } from 'node:util';

export interface Holder {
  readonly pid: number;
  readonly name: string;
  /** Its command line; empty if the system does not report it. */
  readonly command: string;
}

/** The process that listens on a port, if this user may see it. */
export function listenerOn(port: number, interrupted: AbortSignal): Promise<Holder | null> {
  return process.platform === 'linux' ? fromProc(port) : fromLsof(port, interrupted);
}

/**
 * On Linux without another program: the inode of the port's socket, then the process that has it
 * open.
 */
async function fromProc(port: number): Promise<Holder | null> {
  const sockets = await listeningSockets(port);
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    if (await holdsOneOf(pid, sockets)) {
      const name = await readFile(`/proc/${pid}/comm`, 'utf8');
      const args = await orElse(readFile(`/proc/${pid}/cmdline`, 'utf8'), '');
      return { pid: Number(pid), name: name.trim(), command: args.replaceAll('\0', ' ') };
    }
  }
  return null;
}

async function listeningSockets(port: number): Promise<Set<string>> {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const LISTEN = '0A';
  const links = new Set<string>();
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of (await orElse(readFile(table, 'utf8'), '')).split('\n').slice(1)) {
      const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
      if (local?.endsWith(suffix) && state === LISTEN) links.add(`socket:[${inode}]`);
    }
  }
  return links;
}

async function holdsOneOf(pid: string, sockets: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  for (const fd of await orElse(readdir(folder), [])) {
    if (sockets.has(await orElse(readlink(`${folder}/${fd}`), ''))) return true;
  }
  return false;
}

async function fromLsof(port: number, signal: AbortSignal): Promise<Holder | null> {
  const lsof = promisify(execFile)('lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fpc'], {
    signal,
    timeout: 5_000,
  });
  const { stdout } = await orElse(lsof, { stdout: '', stderr: '' });
  const [, pid, name] = /^p(\d+)\nc(.*)$/m.exec(stdout) ?? [];
  if (pid === undefined || name === undefined) return null;
  const ps = promisify(execFile)('ps', ['-o', 'args=', '-p', pid], { signal, timeout: 5_000 });
  const { stdout: command } = await orElse(ps, { stdout: '', stderr: '' });
  return { pid: Number(pid), name, command: command.trim() };
}

/** Processes exit, other users' are hidden and lsof may be missing: then the owner is unknown. */
async function orElse<T>(attempt: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await attempt;
  } catch {
    return otherwise;
  }
}
