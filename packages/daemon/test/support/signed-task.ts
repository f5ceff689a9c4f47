import { createHmac } from 'node:crypto';
import type { ApiRequest } from './client.js';

export const callbackSecret = `whsec_${Buffer.from('what the queue of a test signs with').toString('base64')}`;

const key = Buffer.from(callbackSecret.slice('whsec_'.length), 'base64');
let count = 0;

/** A task as the queue delivers it, signed now; each one is another task. */
export function signedTask(body: string, contentType = 'application/json'): ApiRequest {
  const id = `01K9ZT6A8B0C2D4E6F8G1H${String(count++).padStart(4, '0')}`;
  const timestamp = String(Math.floor(Date.now() / 1000));
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return {
    method: 'POST',
    path: '/api/v1/queue/callback',
    body,
    headers: {
      'content-type': contentType,
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${digest}`,
      'x-queue-name': 'agents',
      'x-queue-task-id': id,
      'x-queue-lease-token': 'l1.contract',
      'x-queue-attempt': '1',
      'x-queue-redrive-count': '0',
    },
  };
}
