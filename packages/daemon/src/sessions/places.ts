import { createHash } from 'node:crypto';
import { join } from 'node:path';

/** Everything of all sessions: a directory for each, and what they share. */
export function sessionsDirectory(dataDir: string): string {
  return join(dataDir, 'sessions');
}

/** What belongs to one session: its output, its prompt, how it ended. */
export function sessionDirectory(dataDir: string, id: string): string {
  return join(sessionsDirectory(dataDir), id);
}

// The address of a socket holds 108 bytes on Linux and 104 on macOS, its end mark included.
const maxSocketPath = 100;

/**
 * The socket of the tmux server that the agents run in, `<data>/sessions/tmux.sock`. A data
 * directory whose path is too long for a socket has it in /tmp, under a name made from that path.
 * The tmux session of an agent bears the session's id: `tmux -S <socket> attach -t <id>`.
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
