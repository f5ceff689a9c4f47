import { hash } from 'node:crypto';
import type { Detection } from './detection.js';

/** Knows the transcripts of one command line: where they are and what their lines mean. */
export interface TranscriptReader {
  /** The id of the backend. */
  readonly backend: string;
  /** Directories below which its transcripts are, whether they exist or not. */
  roots(places: Places): readonly string[];
  /** Is a file of this name a transcript? */
  isTranscript(name: string): boolean;
  /**
   * A line that holds none of these texts means nothing to the reader and is never parsed. A text
   * with its quotes is a name or a whole value of the JSON: inside a text they would be escaped.
   */
  readonly markers: readonly string[];
  /** Begins a file, or goes on with what `carry` said when it was left. */
  begin(file: string, carry: unknown, conversations: Conversations): LineReader;
  /** Restores what `carry` knew of other conversations, after a restart. */
  recall?(carry: unknown, conversations: Conversations): void;
}

export interface Places {
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The daemon's own data directory, for copies that it makes itself. */
  readonly dataDir?: string | undefined;
}

/** Reads the lines of one file in their order. */
export interface LineReader {
  /**
   * What a line shows, or nothing. Throws a `BrokenLine` when the line should mean something and
   * does not.
   */
  read(line: JsonObject, offset: number): Detection | undefined;
  /** What must be known to go on behind the last line: plain JSON, small. */
  carry(): unknown;
}

/** Which conversation a conversation was copied from, as far as the files so far have told. */
export interface Conversations {
  rootOf(id: string): string | undefined;
  learnRoot(id: string, root: string): void;
}

export type JsonObject = Readonly<Record<string, unknown>>;

export class BrokenLine extends Error {
  override readonly name = 'BrokenLine';
}

/** A short name that is the same for the same parts alone. */
export function nameOf(...parts: readonly string[]): string {
  const digest = hash('sha256', JSON.stringify(parts), 'buffer') as unknown as Buffer;
  return digest.toString('latin1', 0, 16);
}

export function objectIn(line: JsonObject, name: string): JsonObject | undefined {
  const value = line[name];
  return typeof value === 'object' && value !== null ? (value as JsonObject) : undefined;
}

/** The text of that name, or "" when there is none. */
export function textIn(line: JsonObject, name: string): string {
  const value = line[name];
  return typeof value === 'string' ? value : '';
}

/** A figure that is absent is 0; one that is no count at all is a broken line. */
export function countIn(usage: JsonObject, name: string): number {
  const value = usage[name] ?? 0;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) {
    if (value <= maxTokens) return value;
  }
  throw new BrokenLine(`${name} is not a count of tokens`);
}

/** More than any model takes in at once by far, and small enough that sums stay exact. */
const maxTokens = 1e12;

export function timeIn(line: JsonObject): number {
  return checkedTime(Date.parse(textIn(line, 'timestamp')), 'timestamp');
}

/** A time in milliseconds since 1970. */
export function millisIn(line: JsonObject, name: string): number {
  return checkedTime(line[name], name);
}

function checkedTime(time: unknown, name: string): number {
  if (typeof time === 'number' && time >= 0 && time < latestTime) return time;
  throw new BrokenLine(`${name} is not a time`);
}

const latestTime = Date.UTC(9999, 0);
