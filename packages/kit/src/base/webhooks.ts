/** The Standard Webhooks signature scheme, used by the queue and the daemon. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Random } from './clock-and-random.js';

const prefix = 'whsec_';
const secretPattern = /^whsec_(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export function newSigningSecret(random: Random): string {
  return prefix + Buffer.from(random.bytes(32)).toString('base64');
}

/** The key of a `whsec_` secret; undefined when it is not valid. */
export function signingKeyOf(secret: string): Uint8Array | undefined {
  if (!secretPattern.test(secret)) return undefined;
  const key = Buffer.from(secret.slice(prefix.length), 'base64');
  return key.length === 0 ? undefined : key;
}

export interface Signed {
  id: string;
  timestampSeconds: number;
  /** The raw bytes that are sent. */
  body: Uint8Array;
}

/** The `webhook-signature` header: one signature for each key. */
export function signatureOf(signed: Signed, keys: readonly Uint8Array[]): string {
  return keys.map((key) => `v1,${digestOf(signed, key).toString('base64')}`).join(' ');
}

/** Whether one of the signatures in the header was made with the key. */
export function isSignedBy(key: Uint8Array, signed: Signed, header: string): boolean {
  const expected = digestOf(signed, key);
  return header.split(' ').some((each) => {
    if (!each.startsWith('v1,')) return false;
    const digest = Buffer.from(each.slice('v1,'.length), 'base64');
    return digest.length === expected.length && timingSafeEqual(digest, expected);
  });
}

function digestOf({ id, timestampSeconds, body }: Signed, key: Uint8Array): Buffer {
  return createHmac('sha256', key).update(`${id}.${timestampSeconds}.`).update(body).digest();
}
