import { randomFillSync } from 'node:crypto';
import { monotonicUlids } from './ulid.js';

/** Randomness as a dependency: from the system in a server, from a seed in a simulation. */
export interface Random {
  /** A number from 0 up to, not including, 1. */
  next(): number;
  /** An integer from `low` to `high`, inclusive. */
  integer(low: number, high: number): number;
  /** Random bytes. */
  bytes(length: number): Uint8Array;
  /** A ULID for time `now`, greater than every earlier one. */
  ulid(now: number): string;
}

// One system call serves many small requests.
const pool = new Uint8Array(16_384);
let poolUsed = pool.length;

function fillFromPool(target: Uint8Array): void {
  if (target.length > pool.length / 4) {
    randomFillSync(target);
    return;
  }
  if (poolUsed + target.length > pool.length) {
    randomFillSync(pool);
    poolUsed = 0;
  }
  target.set(pool.subarray(poolUsed, poolUsed + target.length));
  // The bytes may become secrets, so they are erased from the pool.
  pool.fill(0, poolUsed, poolUsed + target.length);
  poolUsed += target.length;
}

/** Cryptographically strong. */
export const systemRandom: Random = fromBytes(fillFromPool);

/**
 * The same seed gives the same sequence on every machine. xoshiro128**, seeded by splitmix32:
 * good statistics, no secrecy.
 */
export function seededRandom(seed: number): Random {
  let mix = seed >>> 0;
  const splitmix = () => {
    mix = (mix + 0x9e3779b9) >>> 0;
    let z = mix;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  };
  let [a, b, c, d] = [splitmix(), splitmix(), splitmix(), splitmix()];
  const word = () => {
    const scrambled = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9) >>> 0;
    const t = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= t;
    d = rotateLeft(d, 11);
    return scrambled;
  };
  return fromBytes((target) => {
    for (let i = 0; i < target.length; i += 4) {
      const bits = word();
      for (let j = 0; j < 4 && i + j < target.length; j++) target[i + j] = bits >>> (8 * j);
    }
  });
}

function fromBytes(fill: (target: Uint8Array) => void): Random {
  const eight = new Uint8Array(8);
  const view = new DataView(eight.buffer);
  const next = () => {
    fill(eight);
    // 53 bits, the most a double holds exactly.
    return (view.getUint32(0) * 2 ** 21 + (view.getUint32(4) >>> 11)) / 2 ** 53;
  };
  return {
    next,
    integer: (low, high) => low + Math.floor(next() * (high - low + 1)),
    bytes: (length) => {
      const bytes = new Uint8Array(length);
      fill(bytes);
      return bytes;
    },
    ulid: monotonicUlids(fill),
  };
}

function rotateLeft(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
