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
  return {
    input: Math.max(a.input, b.input),
    output: Math.max(a.output, b.output),
    cacheRead: Math.max(a.cacheRead, b.cacheRead),
    cacheWrite: Math.max(a.cacheWrite, b.cacheWrite),
    cacheWriteLong: Math.max(a.cacheWriteLong, b.cacheWriteLong),
  };
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
