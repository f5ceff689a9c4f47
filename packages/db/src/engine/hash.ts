/**
 * A fast 64-bit hash of text in two 32-bit lanes, for noticing damage and divergence. It is not
 * made to withstand an attacker.
 */
export interface Hash64 {
  high: number;
  low: number;
}

export const emptyHash: Hash64 = { high: 0x243f6a88, low: 0x85a308d3 };

/** The hash of `text`, going on from `seed`. */
export function hashText(text: string, seed: Hash64 = emptyHash): Hash64 {
  let high = seed.high ^ 0xdeadbeef;
  let low = seed.low ^ 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    high = Math.imul(high ^ unit, 0x9e3779b1);
    low = Math.imul(low ^ unit, 0x5f356495);
  }
  const mixedHigh =
    Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35);
  const mixedLow =
    Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35);
  return { high: mixedHigh >>> 0, low: mixedLow >>> 0 };
}

/** 32 bits of it, as a record carries them. */
export function hash32(text: string): number {
  const { high, low } = hashText(text);
  return (high ^ low) >>> 0;
}

export function hashToBigInt(hash: Hash64): bigint {
  return (BigInt(hash.high) << 32n) | BigInt(hash.low);
}
