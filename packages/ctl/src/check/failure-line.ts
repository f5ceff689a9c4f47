import { humanDuration } from '@millrace/kit/units';
import { cut, printable } from '../render/text.js';
import type { Ending } from './program.js';

const maxCommand = 120;

/** One line about a failed command whose output does not explain the failure. */
export function failureLine(
  command: readonly string[],
  { exitCode, signal }: Ending,
  { elapsedMs, isSilent }: { elapsedMs: number; isSilent: boolean },
): string {
  const what = cut(printable(command.join(' ')), maxCommand);
  const how =
    signal === null
      ? `failed with exit code ${exitCode}`
      : `was killed by ${signal} (exit code ${exitCode})`;
  const silence = isSilent ? ' and printed nothing' : '';
  return `\`${what}\` ${how} after ${humanDuration(elapsedMs)}${silence}`;
}
