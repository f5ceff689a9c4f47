import { createReadStream } from 'node:fs';
import { systemClock } from '@millrace/kit/clock';
import { UsageError, messageOf } from '@millrace/kit/errors';
import { parseDuration, parseTimestamp, UnitError } from '@millrace/kit/units';
import type { Filter, FindQuery } from '@millrace/db';
import type { Terminal } from './terminal.js';
import { parseConditions } from './conditions.js';

/** `age,-name`: by age, then by name descending. */
export function parseOrder(text: string | undefined): { field: string; desc: boolean }[] {
  return listOf(text).map((step) => {
    const desc = step.startsWith('-');
    return { field: desc ? step.slice(1) : step, desc };
  });
}

/** `name,address.city` */
export function listOf(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

export function wholeNumber(text: string | undefined, flag: string, min = 0): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= min) return value;
  throw new UsageError(`${flag} must be a whole number, ${min} or more, not "${text}".`);
}

/** Parses `15m` to milliseconds. */
export function durationOf(text: string | undefined, flag: string): number | undefined {
  if (text === undefined) return undefined;
  try {
    return parseDuration(text);
  } catch (error) {
    if (error instanceof UnitError) throw new UsageError(`${flag} ${error.message}.`);
    throw error;
  }
}

/** Combines conditions and `--filter`; both must match. */
export function filterOf(
  conditions: readonly string[],
  json: string | undefined,
  flag = '--filter',
): Filter | undefined {
  const written = parseConditions(conditions);
  if (json === undefined) return written;
  const given = parseJson(json, flag);
  if (!isObject(given)) {
    throw new UsageError(
      `${flag} must be a JSON object such as {"field":"age","op":"gt","value":30}.`,
    );
  }
  const filter = given as Filter;
  return written ? { and: [written, filter] } : filter;
}

export function lookupsOf(json: string | undefined): FindQuery['lookup'] {
  return json === undefined ? undefined : (parseJson(json, '--lookup') as FindQuery['lookup']);
}

/** The document of a write: JSON, `@file`, or `-` for stdin. */
export async function documentOf(
  given: string | undefined,
  terminal: Terminal,
): Promise<Record<string, unknown>> {
  const [text, place] = await textOf(given, terminal);
  const value = parseJson(text, place);
  if (isObject(value)) return value;
  throw new UsageError(`${place} must be a JSON object such as {"name":"Ada"}.`);
}

/** The text of an argument, `@file` or stdin, and its name in errors. */
async function textOf(
  given: string | undefined,
  terminal: Terminal,
): Promise<[text: string, place: string]> {
  if (given === undefined || given === '-') {
    if (given === undefined && terminal.in.isScreen) {
      throw new UsageError('The data is missing. Give it as JSON, as @file, or as - for stdin.');
    }
    const { text } = await import('node:stream/consumers');
    return [await text(terminal.in.stream), 'stdin'];
  }
  if (!given.startsWith('@')) return [given, 'data'];
  const { readFile } = await import('node:fs/promises');
  const file = given.slice(1);
  return [await readFile(file, 'utf8'), file];
}

export function parseJson(text: string, place: string): unknown {
  if (text.trim() === '') throw new UsageError(`${place} is empty. Give it JSON.`);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // JSON.parse repeats the text, which may be long.
    const reason = messageOf(error).replace(
      /,? ?(?:\.\.\.)?"[^]*" ?(?:\.\.\. ?)?is not valid JSON$/,
      '',
    );
    throw new UsageError(`${place} is not JSON: ${reason}.${lostQuotes(text, place)}`, {
      cause: error,
    });
  }
}

/** A shell removes the double quotes of an argument that is not in single quotes. */
function lostQuotes(text: string, place: string): string {
  const isArgument = place === 'data' || place.startsWith('--');
  if (!isArgument || !text.startsWith('{') || text.includes('"')) return '';
  return ` Put single quotes around it, as in '{"name":"Ada"}'.`;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

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
