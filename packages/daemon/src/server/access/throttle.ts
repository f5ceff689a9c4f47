import { isIPv6 } from 'node:net';
import type { Clock } from '@millrace/kit/clock';

const burst = 10;
const refillMs = 6_000;
const maxAddresses = 10_000;

interface Bucket {
  left: number;
  at: number;
}

/**
 * Token bucket per client address against token guessing: a burst of ten wrong tokens, then one
 * every six seconds. Valid tokens are not counted.
 */
export class Throttle {
  readonly #buckets = new Map<string, Bucket>();

  constructor(private readonly clock: Clock) {}

  /** How long this address has to wait; 0 when it may try now. */
  waitMs(address: string): number {
    const bucket = this.#buckets.get(keyOf(address));
    if (!bucket) return 0;
    this.#refill(bucket);
    if (bucket.left >= 1) return 0;
    return Math.max(1, Math.ceil(bucket.at + refillMs - this.clock.monotonic()));
  }

  /** Records a wrong token from this address. */
  failed(address: string): void {
    const key = keyOf(address);
    const bucket = this.#buckets.get(key) ?? { left: burst, at: this.clock.monotonic() };
    this.#refill(bucket);
    bucket.left = Math.max(0, bucket.left - 1);
    // Reinserting keeps the map ordered by last failure, so the first entry is the oldest.
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > maxAddresses) this.#buckets.delete(oldest!);
  }

  #refill(bucket: Bucket): void {
    const now = this.clock.monotonic();
    const refills = Math.floor((now - bucket.at) / refillMs);
    if (refills <= 0) return;
    bucket.left = Math.min(burst, bucket.left + refills);
    bucket.at += refills * refillMs;
  }
}

/** IPv6 addresses share a bucket per /64, because one subscriber owns a whole /64. */
function keyOf(address: string): string {
  const plain = address.replace(/^::ffff:/i, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.replace(/%.*$/, '').split('::');
  const groups = head === '' ? [] : head.split(':');
  const rest = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array<string>(Math.max(0, 8 - groups.length - rest.length)).fill('0');
  const all = tail === undefined ? groups : [...groups, ...zeros, ...rest];
  return `${all.slice(0, 4).join(':')}::/64`;
}
