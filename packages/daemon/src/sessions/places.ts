import { createHash } from 'node:crypto';
import { join } from 'node:path';

/** The directory of all sessions: one directory for each, and shared files. */
export function sessionsDirectory(dataDir: string): string {
  return join(dataDir, 'sessions');
}

/** The files of one session: its output, its prompt, its exit record. */
export function sessionDirectory(dataDir: string, id: string): string {
  return join(sessionsDirectory(dataDir), id);
}

// A socket path is limited to 108 bytes on Linux and 104 on macOS, including the NUL.
const maxSocketPath = 100;

/**
 * The socket of the tmux server that the agents run in, `<data>/sessions/tmux.sock`. If the path of
 * the data directory is too long for a socket, it is in /tmp, under a name derived from that path.
 * The tmux session of an agent is named by the session's id: `tmux -S <socket> attach -t <id>`.
 */
export function tmuxSocket(dataDir: string): string {
  return socketPath(join(sessionsDirectory(dataDir), 'tmux.sock'), dataDir);
}

/** The socket of the host process of an agent over ACP, in the session's directory, likewise. */
export function acpSocket(dataDir: string, id: string): string {
  return socketPath(join(sessionDirectory(dataDir, id), 'acp.sock'), `${dataDir}\n${id}`);
}

function socketPath(own: string, key: string): string {
  if (Buffer.byteLength(own) < maxSocketPath) return own;
  const name = createHash('sha256').update(key).digest('hex').slice(0, 16);
  return `/tmp/millrace-${process.getuid?.() ?? 0}/${name}.sock`;
}
