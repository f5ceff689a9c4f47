import { signatureOf } from '@millrace/kit/webhooks';

/** Headers that let a receiver verify an alert. */
export function signedHeaders(
  { id, body }: { id: string; body: string },
  key: Uint8Array,
  now: number,
): Record<string, string> {
  const timestampSeconds = Math.floor(now / 1000);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signatureOf({ id, timestampSeconds, body: Buffer.from(body) }, [key]),
  };
}
