import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemCode } from '@millrace/kit/errors';

export interface RunScript {
  /** The session's own directory. */
  directory: string;
  file: string;
  args: readonly string[];
}

const scriptName = 'run.sh';
const exitName = 'exit';

/** The script file of a session; with the token it identifies its process. */
export function scriptFile(directory: string): string {
  return join(directory, scriptName);
}

/**
 * Writes the script that runs an agent and records its exit, even when no daemon is running. A
 * file, because prompts and paths are not safe in a shell command, and tmux limits the length of
 * commands. It traps the signals meant for the agent, so it outlives the agent and records its
 * exit.
 */
export function writeRunScript({ directory, file, args }: RunScript): string {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  rmSync(join(directory, exitName), { force: true });
  const exit = quoted(join(directory, exitName));
  const lines = [
    '#!/bin/sh',
    "trap ':' HUP INT QUIT TERM",
    [file, ...args].map(quoted).join(' '),
    'code=$?',
    // Only shell builtins: the agent's search path may contain no other program.
    `printf '%s\\n' "$code" > ${exit}`,
    'exit "$code"',
    '',
  ];
  const script = scriptFile(directory);
  writeFileSync(script, lines.join('\n'), { mode: 0o600 });
  return script;
}

/** For a shell: nothing inside single quotes means anything but the quote itself. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The exit code in the file; shells encode a signal as 128 plus its number. */
export function readExit(
  directory: string,
): { code: number | null; signal: string | null } | undefined {
  let text: string;
  try {
    text = readFileSync(join(directory, exitName), 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error))) return undefined;
    throw error;
  }
  // Without its end it is still being written.
  if (!/^\d+\n$/.test(text)) return undefined;
  const code = Number(text);
  const signal = signalNames[code - 128];
  return signal === undefined ? { code, signal: null } : { code: null, signal };
}

/** Signals whose numbers are the same on all systems. */
export const signalNames: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  6: 'SIGABRT',
  9: 'SIGKILL',
  13: 'SIGPIPE',
  15: 'SIGTERM',
};
