import { hash, timingSafeEqual } from 'node:crypto';
import type { Random } from '../base/random.js';

export interface NewToken {
  /** Names the token in files and logs; no secret. */
  id: string;
  /** What the holder sends. It is shown once and stored nowhere. */
  token: string;
  /** What the server keeps: hex SHA-256 of the token. */
  sha256: string;
}

// Lower case without i, l, o and u: nothing to misread, and a double click selects it whole.
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const maxTokenLength = 512;

/** A new token: `mr_`, an id, and 256 bits of chance. */
export function newToken(random: Random): NewToken {
  const id = encode(random.bytes(8));
  const token = `mr_${id}_${encode(random.bytes(32))}`;
  return { id, token, sha256: hashSecret(token) };
}

/** Hex SHA-256. Enough for secrets that are long and random, which ours are. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/** Compares two hex hashes in a time that does not tell where they differ. */
export function sameHash(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a, 'hex'), Buffer.from(b, 'hex')];
  return left.length === 32 && right.length === 32 && timingSafeEqual(left, right);
}

const bearer = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/** The token of an `Authorization: Bearer` header, or undefined when there is none. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.length > maxTokenLength + 16) return undefined;
  return bearer.exec(header)?.[1];
}

function encode(bytes: Uint8Array): string {
  let text = '';
  let bits = 0;
  let buffer = 0;
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += alphabet[(buffer >>> bits) & 31];
    }
    buffer &= (1 << bits) - 1;
  }
  if (bits > 0) text += alphabet[(buffer << (5 - bits)) & 31];
  return text;
}
