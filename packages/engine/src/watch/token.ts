import { hashText, type Hash64 } from '../value/hash.js';
import { refuse } from '../value/refusal.js';
import { readUint48 } from '../format/keys.js';

/**
 * A resume token is a position in one history: the last commit that was delivered and, if known,
 * the chain hash there. So it is refused by another database, and after a failover that lost the
 * commit.
 *
 *   version u8 | lineage hash 8 | seq u48 | chain 8 when known
 */
export interface ResumePosition {
  seq: number;
  chain: Hash64 | undefined;
}

const version = 1;
const lengths = { plain: 15, withChain: 23 };

export function writeToken(lineage: string, { seq, chain }: ResumePosition): string {
  const bytes = Buffer.alloc(chain ? lengths.withChain : lengths.plain);
  bytes[0] = version;
  writeHash(hashText(lineage), bytes, 1);
  bytes.writeUIntBE(seq, 9, 6);
  if (chain) writeHash(chain, bytes, 15);
  return bytes.toString('base64url');
}

export function readToken(lineage: string, token: string): ResumePosition {
  const bytes = Buffer.from(token, 'base64url');
  const known = bytes.length === lengths.plain || bytes.length === lengths.withChain;
  // Node ignores characters that are not base64url, so the result is encoded again and compared.
  if (!known || bytes[0] !== version || bytes.toString('base64url') !== token) {
    throw badToken('cannot be read');
  }
  if (!sameHash(readHash(bytes, 1), hashText(lineage))) throw badToken('is of another database');
  const chain = bytes.length === lengths.withChain ? readHash(bytes, 15) : undefined;
  return { seq: readUint48(bytes, 9), chain };
}

export function badToken(problem: string) {
  return refuse(
    'BAD_RESUME_TOKEN',
    `The resume token ${problem}; start again with include_initial.`,
  );
}

export function sameHash(a: Hash64, b: Hash64): boolean {
  return a.high === b.high && a.low === b.low;
}

function writeHash(hash: Hash64, bytes: Buffer, at: number): void {
  bytes.writeUInt32BE(hash.high, at);
  bytes.writeUInt32BE(hash.low, at + 4);
}

function readHash(bytes: Buffer, at: number): Hash64 {
  return { high: bytes.readUInt32BE(at), low: bytes.readUInt32BE(at + 4) };
}
