import { stripVTControlCharacters } from 'node:util';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Attempt } from './attempt.js';
import { invocationOf, type OneShot } from './one-shot.js';
import { runProgram, type ProgramEnd } from './program.js';
import { signalIn } from './signals.js';

export interface AskParts {
  clock: Clock;
  log: Log;
  /** What the program gets in its environment. */
  environment: Readonly<Record<string, string>>;
  /** An empty directory: an agent that thinks has no project to look at. */
  cwd: string;
  timeoutMs: number;
}

export interface AskedCli extends OneShot {
  id: string;
  file: string;
}

/** Asks a command line one question and reads how it went from what it leaves behind. */
export async function askCli(
  parts: AskParts,
  cli: AskedCli,
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
    // Some repeat the prompt there, which is nobody's business but the asker's.
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
      return { outcome: 'error', reason: 'the question was withdrawn' };
    case 'too_long':
      return { outcome: 'error', reason: 'it answered more than 4 MiB' };
    case 'timeout':
    case 'exited': {
      const stdout = stripVTControlCharacters(end.stdout);
      const stderr = stripVTControlCharacters(end.stderr);
      const succeeded = end.kind === 'exited' && end.code === 0;
      // Some wait for their limit to end rather than give up: the signal counts all the same.
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
