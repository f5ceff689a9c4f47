import { hash } from 'node:crypto';
import type { Detection } from './detection.js';

/** Reads the transcripts of one command line: where they are and what their lines mean. */
export interface TranscriptReader {
  /** The id of the backend. */
  readonly backend: string;
  /** Directories with its transcripts, which may not exist. */
  roots(places: Places): readonly string[];
  /** Whether a file of this name is a transcript. */
  isTranscript(name: string): boolean;
  /**
   * Lines without any of these texts are irrelevant to the reader and never parsed. A text with its
   * quotes is a name or a whole value of the JSON: inside a string they would be escaped.
   */
  readonly markers: readonly string[];
  /** Starts a file, or continues from an earlier `carry`. */
  begin(file: string, carry: unknown, conversations: Conversations): LineReader;
  /** Restores what `carry` contains about other conversations, after a restart. */
  recall?(carry: unknown, conversations: Conversations): void;
}

export interface Places {
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The daemon's own data directory, for copies that it makes itself. */
  readonly dataDir?: string | undefined;
}

/** Reads the lines of one file in order. */
export interface LineReader {
  /** The detection in a line, if any. Throws a `BrokenLine` when a relevant line is invalid. */
  read(line: JsonObject, offset: number): Detection | undefined;
  /** The state needed to continue after the last line: small, plain JSON. */
  carry(): unknown;
}

/** The original of each copied conversation, as far as files were read. */
export interface Conversations {
  rootOf(id: string): string | undefined;
  learnRoot(id: string, root: string): void;
}

export type JsonObject = Readonly<Record<string, unknown>>;

export class BrokenLine extends Error {
  override readonly name = 'BrokenLine';
}

/** A short id derived from the parts. */
export function nameOf(...parts: readonly string[]): string {
  const digest = hash('sha256', JSON.stringify(parts), 'buffer') as unknown as Buffer;
  return digest.toString('latin1', 0, 16);
}

export function objectIn(line: JsonObject, name: string): JsonObject | undefined {
  const value = line[name];
  return typeof value === 'object' && value !== null ? (value as JsonObject) : undefined;
}

/** The string with that name, or "" when there is none. */
export function textIn(line: JsonObject, name: string): string {
  const value = line[name];
  return typeof value === 'string' ? value : '';
}

/** An absent count is 0; an invalid one makes the line broken. */
export function countIn(usage: JsonObject, name: string): number {
  const value = usage[name] ?? 0;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) {
    if (value <= maxTokens) return value;
  }
  throw new BrokenLine(`${name} is not a count of tokens`);
}

/** Far more than any model accepts, and small enough that sums stay exact. */
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
