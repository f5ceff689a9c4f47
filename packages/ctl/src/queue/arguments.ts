import { createReadStream } from 'node:fs';
import { systemClock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { parseDuration, parseTimestamp, UnitError } from '@millrace/kit/units';
import type { Terminal } from '../base/terminal.js';

/** `2026-03-02T00:00:00Z`, or `2h` for two hours ago. */
export function momentAgo(text: string | undefined, flag: string): string | undefined {
  return momentOf(text, flag, -1);
}

/** `2026-03-02T00:00:00Z`, or `2h` for two hours from now. */
export function momentFromNow(text: string | undefined, flag: string): string | undefined {
  return momentOf(text, flag, 1);
}

/** `2026-03-02T00:00:00Z`, or `90d` from now; must be in the future. */
export function momentAhead(text: string | undefined, flag: string): string | undefined {
  const moment = momentOf(text, flag, 1);
  if (moment === undefined || Date.parse(moment) > systemClock.now()) return moment;
  throw new UsageError(`${flag} must be in the future, and ${text} is not.`);
}

function momentOf(text: string | undefined, flag: string, direction: 1 | -1): string | undefined {
  if (text === undefined) return undefined;
  try {
    const isTime = /^\d{4}-/.test(text);
    const at = isTime ? parseTimestamp(text) : systemClock.now() + direction * parseDuration(text);
    return new Date(at).toISOString();
  } catch (error) {
    if (error instanceof UnitError) throw new UsageError(`${flag} ${error.message}.`);
    if (error instanceof RangeError) throw new UsageError(`${flag} is too far away: ${text}.`);
    throw error;
  }
}

/** The bytes of a file named on the command line; - is stdin. */
export async function* bytesOf(file: string, terminal: Terminal): AsyncGenerator<Uint8Array> {
  if (file === '-') {
    for await (const chunk of terminal.in.stream) yield Buffer.from(chunk as string);
    return;
  }
  yield* createReadStream(file) as AsyncIterable<Buffer>;
}

export function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}

export function tasks(count: number): string {
  return count === 1 ? '1 task' : `${count} tasks`;
}
