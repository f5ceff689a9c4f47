import { isSignedBy } from '@millrace/kit/webhooks';
import { fail } from '../core/refusals.js';

const toleranceMs = 5 * 60_000;

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
  const signed = { id, timestampSeconds: Number(timestamp), body };
  if (!isSignedBy(key, signed, signature)) {
    throw bad(
      'No signature fits: queue.callback_secret must be the secret that the queue signs with.',
    );
  }
}

function bad(detail: string): Error {
  return fail('BAD_SIGNATURE', detail);
}
