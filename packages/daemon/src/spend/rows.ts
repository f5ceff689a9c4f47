import { noTokens, tokenKinds, type Tokens, type Place } from '../transcripts/reader.js';

/*
 * Row format of the tally. Every key begins with `spend:` and the letter of its kind; figures have
 * six bytes each, for up to 2^48 tokens.
 *
 *     m <message: 16>              at, place, tokens     what was counted of a message
 *     c <slot: 4> <place: 4>       tokens                sums of a quarter of an hour
 *     r <at: 6> <message: 16>      place, input, output  messages of the last days, by time
 *     p <place: 4>                 JSON                  whose tokens
 *     t <path, hashed: 16>         JSON                  how far a transcript has been read
 *     h <session, hashed: 16>      JSON                  what is known of a session
 */

export type RowKind = 'm' | 'c' | 'r' | 'p' | 't' | 'h';

const prefixBytes = 7;

function keyOf(kind: RowKind, bytes: number): Buffer {
  const key = Buffer.alloc(prefixBytes + bytes);
  key.write(`spend:${kind}`, 'latin1');
  return key;
}

export function rowsOf(kind: RowKind): { start: Buffer; end: Buffer } {
  const end = keyOf(kind, 0);
  end[prefixBytes - 1]! += 1;
  return { start: keyOf(kind, 0), end };
}

/** The key of a message, a session or a transcript, by its hash. */
export function hashKey(kind: 'm' | 'h' | 't', hash: string): Buffer {
  const key = keyOf(kind, 16);
  key.write(hash, prefixBytes, 'latin1');
  return key;
}

export function placeKey(place: number): Buffer {
  const key = keyOf('p', 4);
  key.writeUInt32BE(place, prefixBytes);
  return key;
}

export function placeOfKey(key: Buffer): number {
  return key.readUInt32BE(prefixBytes);
}

export function cellKey(slot: number, place: number): Buffer {
  const key = keyOf('c', 8);
  key.writeUInt32BE(slot, prefixBytes);
  key.writeUInt32BE(place, prefixBytes + 4);
  return key;
}

export function cellOfKey(key: Buffer): { slot: number; place: number } {
  return { slot: key.readUInt32BE(prefixBytes), place: key.readUInt32BE(prefixBytes + 4) };
}

export function recentKey(at: number, message = ''): Buffer {
  const key = keyOf('r', 6 + message.length);
  key.writeUIntBE(at, prefixBytes, 6);
  key.write(message, prefixBytes + 6, 'latin1');
  return key;
}

export function timeOfRecent(key: Buffer): number {
  return key.readUIntBE(prefixBytes, 6);
}

/** The counted tokens of a message, and their owner. */
export interface Counted {
  at: number;
  place: number;
  tokens: Tokens;
}

export function encodeMessage({ at, place, tokens }: Counted): Buffer {
  const bytes = Buffer.allocUnsafe(40);
  bytes.writeUIntBE(at, 0, 6);
  bytes.writeUInt32BE(place, 6);
  writeTokens(bytes, 10, tokens);
  return bytes;
}

export function decodeMessage(bytes: Buffer): Counted {
  return {
    at: bytes.readUIntBE(0, 6),
    place: bytes.readUInt32BE(6),
    tokens: decodeTokens(bytes, 10),
  };
}

export function encodeTokens(tokens: Tokens): Buffer {
  const bytes = Buffer.allocUnsafe(30);
  writeTokens(bytes, 0, tokens);
  return bytes;
}

export function encodeRecent({ place, tokens }: Counted): Buffer {
  const bytes = Buffer.allocUnsafe(16);
  bytes.writeUInt32BE(place, 0);
  bytes.writeUIntBE(tokens.input, 4, 6);
  bytes.writeUIntBE(tokens.output, 10, 6);
  return bytes;
}

export function decodeRecent(bytes: Buffer): { place: number; input: number; output: number } {
  return {
    place: bytes.readUInt32BE(0),
    input: bytes.readUIntBE(4, 6),
    output: bytes.readUIntBE(10, 6),
  };
}

function writeTokens(bytes: Buffer, from: number, tokens: Tokens): void {
  let at = from;
  for (const kind of tokenKinds) at = bytes.writeUIntBE(tokens[kind], at, 6);
}

export function decodeTokens(bytes: Buffer, from = 0): Tokens {
  const tokens = { ...noTokens };
  tokenKinds.forEach((kind, at) => (tokens[kind] = bytes.readUIntBE(from + 6 * at, 6)));
  return tokens;
}

/** A place with the repository of its directory. */
export interface KnownPlace extends Place {
  repo: string;
}

/** Assigns a stable number to every place, to make rows short. */
export class PlaceNumbers {
  readonly #known: KnownPlace[] = [];
  readonly #numbers = new Map<string, number>();
  /** Places whose rows are not on disk yet. */
  readonly #unsaved = new Set<number>();

  at(number: number): KnownPlace {
    const place = this.#known[number];
    if (!place) throw new Error(`The tally has no place ${number}`);
    return place;
  }

  numberOf(place: Place): number | undefined {
    return this.#numbers.get(nameOf(place));
  }

  /** Loads a row from disk. */
  load(number: number, place: KnownPlace): void {
    this.#known[number] = place;
    this.#numbers.set(nameOf(place), number);
  }

  add(place: KnownPlace): void {
    if (this.numberOf(place) !== undefined) return;
    const number = this.#known.length;
    this.load(number, place);
    this.#unsaved.add(number);
  }

  unsaved(): readonly number[] {
    return [...this.#unsaved];
  }

  saved(numbers: readonly number[]): void {
    for (const number of numbers) this.#unsaved.delete(number);
  }
}

function nameOf({ backend, agent, cwd, model, rank }: Place): string {
  return `${backend}\0${rank}\0${agent}\0${model}\0${cwd}`;
}
