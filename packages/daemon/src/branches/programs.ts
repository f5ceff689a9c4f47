import { stat } from 'node:fs/promises';
import type { Clock } from '@millrace/kit/clock';
import { findProgram } from '../registry/search-path.js';
import { runGit, safeGitEnvironment } from '../git/run-git.js';
import { runProgram, type ProgramEnd } from '../think/program.js';

export interface ProgramParts {
  clock: Clock;
  environment: Readonly<Record<string, string | undefined>>;
  /** Ends all calls. */
  signal: AbortSignal;
}

/** What became of a call. A program that ended with a code may have meant something by it. */
export type CallEnd =
  | { kind: 'ended'; code: number | null; stdout: string; stderr: string }
  | { kind: 'failed'; why: string };

export type Program = 'git' | 'gh';
export type Call = (program: Program, args: readonly string[], cwd: string) => Promise<CallEnd>;

const timeoutS = 10;

/** Runs git and gh where the search path has them. Whatever happens is a value. */
export function programCalls({ clock, environment, signal }: ProgramParts): Call {
  const timeoutMs = timeoutS * 1000;
  const passed = environmentFor(environment);
  return async (program, args, cwd) => {
    const file = await findProgram(program, environment['PATH']);
    if (!file) return { kind: 'failed', why: `${program} is not installed` };
    if (!(await isDirectory(cwd))) return { kind: 'failed', why: `${cwd} is not there any more` };
    const run = { clock, cwd, timeoutMs, signal };
    const end: ProgramEnd =
      program === 'git'
        ? await runGit({ ...run, environment }, args)
        : await runProgram({ ...run, file, args, input: '', environment: passed });
    switch (end.kind) {
      case 'exited':
        return { kind: 'ended', code: end.code, stdout: end.stdout, stderr: end.stderr };
      case 'timeout':
        return { kind: 'failed', why: `${program} took longer than ${timeoutS} seconds` };
      case 'too_long':
        return { kind: 'failed', why: `${program} had too much to say` };
      case 'aborted':
        return { kind: 'failed', why: `the daemon ended before ${program} did` };
      case 'not_started':
        return { kind: 'failed', why: `${program} could not be started` };
    }
  };
}

/** How a program that did not do what it was asked for is told about. */
export function complaint(program: Program, end: CallEnd): string {
  if (end.kind === 'failed') return end.why;
  // The first line says what is wrong; those below it are advice.
  const [said = ''] = end.stderr.split('\n').flatMap((line) => line.trim() || []);
  const how = end.code === null ? 'was ended' : `ended with code ${end.code}`;
  return said === '' ? `${program} ${how}` : `${program}: ${said.slice(0, 200)}`;
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (there) => there.isDirectory(),
    () => false,
  );
}

/** For gh, which runs git in the repository by itself. */
function environmentFor(
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  return {
    ...safeGitEnvironment(environment),
    NO_COLOR: '1',
    GH_PROMPT_DISABLED: '1',
    GH_NO_UPDATE_NOTIFIER: '1',
  };
}
