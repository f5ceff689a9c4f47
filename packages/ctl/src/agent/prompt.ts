import { text } from 'node:stream/consumers';
import { UsageError } from '@millrace/kit/errors';
import type { Terminal } from '../base/terminal.js';

/** Text for an agent: the argument, or stdin for `-` or no argument. */
export async function promptOf(
  given: string | undefined,
  what: string,
  terminal: Terminal,
): Promise<string> {
  if (given === undefined && terminal.in.isScreen) {
    throw new UsageError(
      `The ${what} is missing. Give it in quotes, or use - to read it from stdin.`,
    );
  }
  const said = given === undefined || given === '-' ? await text(terminal.in.stream) : given;
  if (said.trim() === '')
    throw new UsageError(
      `The ${what} is empty. Give it in quotes, or use - to read it from stdin.`,
    );
  return said.replace(/\n$/, '');
}
