import { createHmac } from 'node:crypto';

/**
 * The headers of the Standard Webhooks scheme. The queue signs its callbacks the same way; the two
 * share no code, for neither may import the other.
 */
export function signedHeaders(
  { id, body }: { id: string; body: string },
  key: Uint8Array,
  now: number,
): Record<string, string> {
  const seconds = String(Math.floor(now / 1000));
  const digest = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': seconds,
    'webhook-signature': `v1,${digest}`,
  };
}
