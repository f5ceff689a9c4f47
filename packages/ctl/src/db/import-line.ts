import { UsageError } from '@millrace/kit/errors';
import { parseTimestamp, UnitError } from '@millrace/kit/units';
import { isObject, parseJson } from '../base/arguments.js';

/** The write that one line describes. */
export interface ImportLine {
  key: string | undefined;
  id: string | undefined;
  data: Record<string, unknown>;
  /** The line is the document. */
  isWhole: boolean;
  /** Milliseconds since the epoch. */
  expiresAt: number | undefined;
}

export interface LineOptions {
  keyField: string | undefined;
  documents: boolean;
}

const recordMembers = new Set([
  'collection',
  'id',
  'key',
  'rev',
  'seq',
  'created_at',
  'updated_at',
  'expires_at',
  'data',
]);

/** Parses a line; `place` is its name in errors. */
export function parseLine(text: string, place: string, options: LineOptions): ImportLine {
  const value = parseJson(text, place);
  if (!isObject(value)) throw new UsageError(`${place} must be a JSON object.`);
  const isRecord = !options.documents && isRecordShape(value);
  const data = isRecord ? (value['data'] as Record<string, unknown>) : value;
  const line: ImportLine = {
    key: isRecord ? textMember(value, 'key', place) : undefined,
    id: isRecord ? textMember(value, 'id', place) : undefined,
    data,
    isWhole: !isRecord,
    expiresAt: isRecord ? timeMember(value, 'expires_at', place) : undefined,
  };
  if (options.keyField !== undefined) line.key = keyAt(data, options.keyField, place);
  return line;
}

/** A record has `data` and only record fields; anything else is a document. */
function isRecordShape(value: Record<string, unknown>): boolean {
  return isObject(value['data']) && Object.keys(value).every((name) => recordMembers.has(name));
}

function textMember(value: Record<string, unknown>, name: string, place: string) {
  const text = value[name];
  if (text === undefined || text === '') return undefined;
  if (typeof text === 'string') return text;
  throw new UsageError(`${place}: ${name} must be a text.`);
}

function timeMember(value: Record<string, unknown>, name: string, place: string) {
  const text = textMember(value, name, place);
  if (text === undefined) return undefined;
  try {
    return parseTimestamp(text);
  } catch (error) {
    if (error instanceof UnitError) throw new UsageError(`${place}: ${name} ${error.message}.`);
    throw error;
  }
}

function keyAt(data: Record<string, unknown>, path: string, place: string): string {
  let at: unknown = data;
  for (const name of path.split('.')) at = isObject(at) ? at[name] : undefined;
  if (typeof at === 'string' && at !== '') return at;
  if (typeof at === 'number') return String(at);
  throw new UsageError(`${place} has no text in "${path}" to use as its key.`);
}
