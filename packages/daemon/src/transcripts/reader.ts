import { hash } from 'node:crypto';

/** Reads the transcripts of one command line: where they are and what their lines mean. */
export interface TranscriptReader {
  /** The id of the backend. */
  readonly backend: string;
  /** Raised when more is read of a line: files are then read again from their start. */
  readonly version?: number;
  /** Directories with its transcripts, which may not exist. */
  roots(places: Places): readonly string[];
  /** How many directories below a root are searched; all of them unless given. */
  readonly depth?: number | undefined;
  /** Whether a file of this name, at this path, is a transcript. */
  isTranscript(name: string, path: string): boolean;
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

/** Tokens of one message, or of many together. */
export interface Tokens {
  /** Input without cache reads, unless the transcript does not separate them. */
  input: number;
  output: number;
  cacheRead: number;
  /** All tokens written to the cache, including long-lived ones. */
  cacheWrite: number;
  /** Those with a TTL of one hour, which cost more than those of five minutes. */
  cacheWriteLong: number;
}

/** Whose the tokens are. */
export interface Place {
  backend: string;
  agent: string;
  cwd: string;
  model: string;
  /** 1 for a line in a copy of another conversation, else 0. */
  rank: 0 | 1;
}

/**
 * A message as one line of a transcript shows it. The same message is shown by several lines: while
 * it is streamed, and again in files of resumed and forked conversations.
 */
export interface Detection {
  /** Names the message: sixteen bytes, as a latin1 text. */
  key: string;
  /** The line's own time, in milliseconds since the epoch. */
  at: number;
  place: Place;
  tokens: Tokens;
  /** Files that the message edits, as it names them. */
  files?: readonly string[];
  /** It is the report of a failure, in the place of an answer. */
  isFailure?: boolean;
}

export const noTokens: Readonly<Tokens> = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  cacheWriteLong: 0,
};
export const tokenKinds = Object.keys(noTokens) as readonly (keyof Tokens)[];

/**
 * Merges two detections of one message. The greatest of each count is used, because a message only
 * grows while it is streamed; the earliest line determines owner and time. The result does not
 * depend on the order or number of reads, so neither do the totals.
 */
export function joined(a: Detection, b: Detection): Detection {
  const { at, place } = isEarlier(b, a) ? b : a;
  return {
    key: a.key,
    at,
    place,
    tokens: greatest(a.tokens, b.tokens),
    files: united(a.files, b.files),
    isFailure: a.isFailure === true || b.isFailure === true,
  };
}

function united(a: readonly string[] = [], b: readonly string[] = []): readonly string[] {
  if (a.length === 0) return b;
  return b.length === 0 ? a : [...new Set([...a, ...b])];
}

export function greatest(a: Tokens, b: Tokens): Tokens {
  const most = { ...a };
  for (const kind of tokenKinds) most[kind] = Math.max(a[kind], b[kind]);
  return most;
}

type Owner = Pick<Detection, 'at' | 'place'>;

/** An order without ties between different detections: time, original before copy, then names. */
export function isEarlier(a: Owner, b: Owner): boolean {
  if (a.at !== b.at) return a.at < b.at;
  const [placeA, placeB] = [a.place, b.place];
  if (placeA.rank !== placeB.rank) return placeA.rank < placeB.rank;
  for (const name of ['agent', 'model', 'cwd', 'backend'] as const) {
    if (placeA[name] !== placeB[name]) return placeA[name] < placeB[name];
  }
  return false;
}
