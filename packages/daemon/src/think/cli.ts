import { stripVTControlCharacters } from 'node:util';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Attempt } from './thinker.js';
import { invocationOf, type OneShot } from '../registry/programs.js';
import { runProgram, type ProgramEnd } from '../registry/run-program.js';
import { signalIn } from './signals.js';

export interface CliRunParts {
  clock: Clock;
  log: Log;
  /** Environment of the program. */
  environment: Readonly<Record<string, string>>;
  /** An empty directory, so that the agent has no project to read. */
  cwd: string;
  timeoutMs: number;
}

export interface ThinkingCli extends OneShot {
  id: string;
  file: string;
}

/** Runs one prompt on an agent CLI, and derives the outcome from exit code and output. */
export async function thinkWithCli(
  parts: CliRunParts,
  cli: ThinkingCli,
  prompt: string,
  signal: AbortSignal,
): Promise<Attempt> {
  const invocation = invocationOf(cli, prompt);
  if ('impossible' in invocation) return { outcome: 'unavailable', reason: invocation.impossible };
  const { clock, cwd, timeoutMs } = parts;
  const end = await runProgram({
    ...invocation,
    file: cli.file,
    cwd,
    environment: { ...parts.environment, NO_COLOR: '1', TERM: 'dumb' },
    timeoutMs,
    signal,
    clock,
  });
  const attempt = attemptOf(cli.id, end, clock.now());
  if (attempt.outcome !== 'answered' && 'stderr' in end) {
    // Logged at debug level only: some CLIs echo the prompt to stderr.
    const lastWords = end.stderr.trimEnd().slice(-500);
    parts.log.debug({ backend: cli.id, outcome: attempt.outcome, lastWords }, 'no answer');
  }
  return attempt;
}

function attemptOf(id: string, end: ProgramEnd, now: number): Attempt {
  switch (end.kind) {
    case 'not_started':
      return { outcome: 'unavailable', reason: end.reason };
    case 'aborted':
      return { outcome: 'error', reason: 'the request was canceled' };
    case 'too_long':
      return { outcome: 'error', reason: 'it answered more than 4 MiB' };
    case 'timeout':
    case 'exited': {
      const stdout = stripVTControlCharacters(end.stdout);
      const stderr = stripVTControlCharacters(end.stderr);
      const succeeded = end.kind === 'exited' && end.code === 0;
      // Some CLIs wait for their limit to end, so a timeout may still show a limit.
      const found = signalIn({ id, succeeded, stdout, stderr }, now);
      if (found) return { outcome: found.kind, reason: found.reason, resetAt: found.resetAt };
      if (end.kind === 'timeout') return { outcome: 'timeout', reason: 'it took too long' };
      return plainEnd(end.code, end.signal, stdout.trim());
    }
  }
}

function plainEnd(code: number | null, signal: string | null, text: string): Attempt {
  if (code === 0) {
    return text === ''
      ? { outcome: 'error', reason: 'it answered nothing' }
      : { outcome: 'answered', text };
  }
  const how = code === null ? `was ended by ${signal ?? 'a signal'}` : `ended with code ${code}`;
  return { outcome: 'error', reason: `it ${how}` };
}
