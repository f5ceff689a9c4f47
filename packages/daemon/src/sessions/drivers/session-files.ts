import { createHash } from 'node:crypto';
import { join } from 'node:path';
import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { ifThere } from '@millrace/kit/errors';
import type { DaemonSchema } from '@millrace/contract/daemon';

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

const currentName = 'output.log';
const oldName = /^output-(\d{1,15})\.old$/;
/** Half of the retained output: the current file, and the one before. */
const halfBytes = 4_194_304;

/**
 * The output of a session. The agent itself writes the file, so that its output continues without a
 * daemon; when it is long, the daemon moves its content to a second file. Positions count from the
 * first byte ever written.
 */
export class OutputLog {
  readonly path: string;

  constructor(
    private readonly directory: string,
    private readonly half = halfBytes,
  ) {
    this.path = join(directory, currentName);
  }

  /** The position after the last byte. */
  end(): number {
    return this.#base() + sizeOf(this.path);
  }

  /** The position of the oldest retained byte. */
  start(): number {
    return this.#old()?.start ?? 0;
  }

  /** The bytes from a position on, as many as there are and `most` at the most. */
  read(from: number, most: number): { from: number; bytes: Buffer } {
    const old = this.#old();
    const base = old ? old.start + old.size : 0;
    const begin = Math.max(from, old?.start ?? 0);
    const parts: Buffer[] = [];
    let left = most;
    if (old && begin < base) {
      const part = bytesOf(old.path, begin - old.start, left);
      parts.push(part);
      left -= part.length;
    }
    if (left > 0) parts.push(bytesOf(this.path, Math.max(0, begin - base), left));
    return { from: begin, bytes: Buffer.concat(parts) };
  }

  /** Limits the size of the files. */
  trim(): void {
    if (sizeOf(this.path) < this.half) return;
    const source = openSync(this.path, 'r+');
    // Of output written while no daemon ran, the end is enough.
    const skipped = Math.max(0, fstatSync(source).size - 2 * this.half);
    const target = join(this.directory, `output-${this.#base() + skipped}.old`);
    const before = this.#old()?.path;
    const copy = openSync(target, 'w', 0o600);
    try {
      let copied = skipped;
      const piece = Buffer.alloc(1_048_576);
      // The agent keeps writing: bytes written during the copy are copied, too.
      while (copied < fstatSync(source).size) {
        const length = readSync(source, piece, 0, piece.length, copied);
        writeSync(copy, piece, 0, length);
        copied += length;
      }
      ftruncateSync(source, 0);
    } finally {
      closeSync(source);
      closeSync(copy);
    }
    if (before !== undefined && before !== target) rmSync(before, { force: true });
  }

  #base(): number {
    const old = this.#old();
    return old ? old.start + old.size : 0;
  }

  #old(): { path: string; start: number; size: number } | undefined {
    if (!existsSync(this.directory)) return undefined;
    const starts = readdirSync(this.directory)
      .map((name) => oldName.exec(name)?.[1])
      .filter((start) => start !== undefined)
      .map(Number);
    if (starts.length === 0) return undefined;
    // Both exist only after a crash during `trim`; the newer one counts.
    const start = Math.max(...starts);
    const path = join(this.directory, `output-${start}.old`);
    return { path, start, size: sizeOf(path) };
  }
}

function sizeOf(path: string): number {
  return ifThere(() => statSync(path).size) ?? 0;
}

function bytesOf(path: string, from: number, most: number): Buffer {
  const size = sizeOf(path);
  const length = Math.max(0, Math.min(most, size - from));
  if (length === 0) return Buffer.alloc(0);
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(length);
    return bytes.subarray(0, readSync(file, bytes, 0, length, from));
  } finally {
    closeSync(file);
  }
}

/*
 * Programs that draw on the whole screen write no lines: the output of their sessions is what the
 * terminal shows, and after their end what it showed last.
 */

const fullScreenClis = new Set(['codex', 'opencode']);

export function isFullScreen(cli: string): boolean {
  return fullScreenClis.has(cli);
}

function fileIn(directory: string): string {
  return join(directory, 'screen');
}

export function saveScreen(directory: string, screen: string): void {
  writeFileSync(fileIn(directory), screen, { mode: 0o600 });
}

export interface ScreenView {
  /** The session's own directory. */
  directory: string;
  /** Undefined when there is no terminal any more. */
  screen: string | undefined;
  /** How many bytes the program has written. */
  end: number;
}

/** The last lines of the screen. A reader that follows gets them again when something was drawn. */
export function screenOutput(
  { directory, screen, end }: ScreenView,
  { after, limit }: { after?: number | undefined; limit: number },
): DaemonSchema<'SessionOutput'> {
  if (after !== undefined && after >= end) return { lines: [], next: end };
  const file = fileIn(directory);
  const saved = screen ?? (existsSync(file) ? readFileSync(file, 'utf8') : '');
  const lines = saved.split('\n').map((line) => line.trimEnd());
  while (lines.at(-1) === '') lines.pop();
  while (lines[0] === '') lines.shift();
  return { lines: lines.slice(-limit), next: end };
}
