import { stat } from 'node:fs/promises';
import type { Clock } from '@millrace/kit/clock';
import { findProgram } from '../registry/programs.js';
import { runGh, runGit } from '../git/run-git.js';
import type { ProgramEnd } from '../registry/run-program.js';

export interface ProgramParts {
  clock: Clock;
  environment: Readonly<Record<string, string | undefined>>;
  /** Aborts all calls. */
  signal: AbortSignal;
}

/** Result of a call. A non-zero exit code may carry a meaning. */
export type CallEnd =
  | { kind: 'ended'; code: number | null; stdout: string; stderr: string }
  | { kind: 'failed'; why: string };

export type Program = 'git' | 'gh';
export type Call = (program: Program, args: readonly string[], cwd: string) => Promise<CallEnd>;

const timeoutS = 10;

/** Runs git and gh from the search path. Failures are returned, not thrown. */
export function programCalls({ clock, environment, signal }: ProgramParts): Call {
  const timeoutMs = timeoutS * 1000;
  return async (program, args, cwd) => {
    const file = await findProgram(program, environment['PATH']);
    if (!file) return { kind: 'failed', why: `${program} is not installed` };
    if (!(await isDirectory(cwd))) return { kind: 'failed', why: `${cwd} no longer exists` };
    const run = { clock, cwd, timeoutMs, signal, environment };
    const end: ProgramEnd =
      program === 'git' ? await runGit(run, args) : await runGh({ ...run, file }, args);
    switch (end.kind) {
      case 'exited':
        return { kind: 'ended', code: end.code, stdout: end.stdout, stderr: end.stderr };
      case 'timeout':
        return { kind: 'failed', why: `${program} took longer than ${timeoutS} seconds` };
      case 'too_long':
        return { kind: 'failed', why: `the output of ${program} is too large` };
      case 'aborted':
        return { kind: 'failed', why: `the daemon stopped before ${program} finished` };
      case 'not_started':
        return { kind: 'failed', why: `${program} could not be started` };
    }
  };
}

/** Error message for a program that failed. */
export function complaint(program: Program, end: CallEnd): string {
  if (end.kind === 'failed') return end.why;
  // The first line is the error; the following ones are hints.
  const [said = ''] = end.stderr.split('\n').flatMap((line) => line.trim() || []);
  const how = end.code === null ? 'was killed' : `exited with code ${end.code}`;
  return said === '' ? `${program} ${how}` : `${program}: ${said.slice(0, 200)}`;
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (there) => there.isDirectory(),
    () => false,
  );
}
