import { isSignedBy } from '@millrace/kit/webhooks';
import { fail } from '../core/refusals.js';

const toleranceMs = 5 * 60_000;

/** Raw headers of the Standard Webhooks scheme. */
export interface Signing {
  id: string | undefined;
  timestamp: string | undefined;
  signature: string | undefined;
}

/**
 * Verifies signature and timestamp over the raw bytes, before they are parsed.
 */
export function checkSignature(
  { id, timestamp, signature }: Signing,
  body: Uint8Array,
  { key, now }: { key: Uint8Array; now: number },
): void {
  if (!id || !timestamp || !signature) {
    throw bad(
      'webhook-id, webhook-timestamp and webhook-signature are required. Configure the queue to sign.',
    );
  }
  if (!/^\d{1,12}$/.test(timestamp)) throw bad('webhook-timestamp must be Unix seconds.');
  if (Math.abs(now - Number(timestamp) * 1000) > toleranceMs) {
    throw bad('webhook-timestamp is more than 5 minutes off. Synchronize both clocks.');
  }
  const signed = { id, timestampSeconds: Number(timestamp), body };
  if (!isSignedBy(key, signed, signature)) {
    throw bad(
      'No signature matches. queue.callback_secret must be the signing secret of the queue.',
    );
  }
}

function bad(detail: string): Error {
  return fail('BAD_SIGNATURE', detail);
}
