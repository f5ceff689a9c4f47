import { text } from 'node:stream/consumers';
import { UsageError } from '@millrace/kit/errors';
import type { Terminal } from '../terminal.js';

/** What is to be told to an agent: the words of the command line, or stdin for `-` or nothing. */
export async function promptOf(
  given: string | undefined,
  what: string,
  terminal: Terminal,
): Promise<string> {
  if (given === undefined && terminal.in.isScreen) {
    throw new UsageError(`The ${what} is missing: give it in quotes, or - to read it from stdin.`);
  }
  const said = given === undefined || given === '-' ? await text(terminal.in.stream) : given;
  if (said.trim() === '') throw new UsageError(`The ${what} is empty.`);
  return said.replace(/\n$/, '');
}
