import { createHmac, timingSafeEqual } from 'node:crypto';
import { fail } from '../core/refusals.js';

const secretPattern = /^whsec_(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const toleranceMs = 5 * 60_000;

/** The key inside a `whsec_` secret; undefined when it is none. */
export function signingKeyOf(secret: string): Uint8Array | undefined {
  if (!secretPattern.test(secret)) return undefined;
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return key.length === 0 ? undefined : key;
}

/** The headers of the Standard Webhooks scheme as they came. */
export interface Signing {
  id: string | undefined;
  timestamp: string | undefined;
  signature: string | undefined;
}

/**
 * Refuses what the holder of the key did not sign, or signed at another time. The signature is
 * over the bytes as they came, before anything reads them.
 */
export function checkSignature(
  { id, timestamp, signature }: Signing,
  body: Uint8Array,
  { key, now }: { key: Uint8Array; now: number },
): void {
  if (!id || !timestamp || !signature) {
    throw bad(
      'webhook-id, webhook-timestamp and webhook-signature are needed: have the queue sign.',
    );
  }
  if (!/^\d{1,12}$/.test(timestamp)) throw bad('webhook-timestamp must be Unix seconds.');
  if (Math.abs(now - Number(timestamp) * 1000) > toleranceMs) {
    throw bad('webhook-timestamp is more than 5 minutes off: set the clocks of both machines.');
  }
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  const isSigned = signature.split(' ').some((each) => isEqual(each, expected));
  if (!isSigned) {
    throw bad(
      'No signature fits: queue.callback_secret must be the secret that the queue signs with.',
    );
  }
}

function isEqual(given: string, expected: Uint8Array): boolean {
  if (!given.startsWith('v1,')) return false;
  const digest = Buffer.from(given.slice('v1,'.length), 'base64');
  return digest.length === expected.length && timingSafeEqual(digest, expected);
}

function bad(detail: string): Error {
  return fail('BAD_SIGNATURE', detail);
}
