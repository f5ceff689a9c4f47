import { createHmac } from 'node:crypto';

const secretPattern = /^whsec_(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The key inside a `whsec_` secret; undefined when it is none. */
export function signingKeyOf(secret: string): Uint8Array | undefined {
  if (!secretPattern.test(secret)) return undefined;
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return key.length === 0 ? undefined : key;
}

export interface Signed {
  id: string;
  timestampSeconds: number;
  /** The raw bytes: what a handler receives is what was signed. */
  body: Uint8Array;
}

/** The `webhook-signature` header of the Standard Webhooks scheme, one signature for each key. */
export function signatureOf(signed: Signed, keys: readonly Uint8Array[]): string {
  const head = `${signed.id}.${signed.timestampSeconds}.`;
  return keys
    .map((key) => {
      const digest = createHmac('sha256', key).update(head).update(signed.body).digest('base64');
      return `v1,${digest}`;
    })
    .join(' ');
}
