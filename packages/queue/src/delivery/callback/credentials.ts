import { signingKeyOf } from '@millrace/kit/webhooks';
import type { Queue, QueueConfig, SecretLookup } from '../../core/queue.js';

/** How the callbacks of a queue authenticate themselves. */
export interface Credentials {
  auth: { name: string; lowerName: string; value: string } | undefined;
  signingKeys: readonly Uint8Array[];
}

export type CredentialsResult =
  { ok: true; credentials: Credentials } | { ok: false; reason: string };

/** The credentials of a queue, or why the queue is held. */
export function credentialsFor(
  { name, config }: Queue,
  checks: { isAllowed: (url: string) => boolean; findSecret: SecretLookup },
): CredentialsResult {
  const { url } = config.callback;
  if (url === undefined) return { ok: true, credentials: { auth: undefined, signingKeys: [] } };
  if (!checks.isAllowed(url)) {
    return { ok: false, reason: 'its callback URL is not on the allowlist' };
  }
  return credentialsOf(name, config.callback, checks.findSecret);
}

/** Looks up the secrets that a callback names. */
export function credentialsOf(
  queue: string,
  callback: QueueConfig['callback'],
  findSecret: SecretLookup,
): CredentialsResult {
  const signingKeys: Uint8Array[] = [];
  for (const ref of callback.signing?.secret_refs ?? []) {
    const secret = findSecret(ref, queue);
    if (secret === undefined) return missing(ref);
    const key = signingKeyOf(secret);
    if (!key) return { ok: false, reason: `the secret ${ref} is not "whsec_" and base64` };
    signingKeys.push(key);
  }
  const { auth } = callback;
  if (auth.type === 'none') return { ok: true, credentials: { auth: undefined, signingKeys } };
  const secret = findSecret(auth.secret_ref, queue);
  if (secret === undefined) return missing(auth.secret_ref);
  const name = auth.type === 'header' ? auth.name : 'Authorization';
  const header = { name, lowerName: name.toLowerCase(), value: valueOf(auth.type, secret) };
  return { ok: true, credentials: { auth: header, signingKeys } };
}

function valueOf(type: 'bearer' | 'basic' | 'header', secret: string): string {
  if (type === 'bearer') return `Bearer ${secret}`;
  return type === 'basic' ? `Basic ${Buffer.from(secret).toString('base64')}` : secret;
}

function missing(ref: string): CredentialsResult {
  return { ok: false, reason: `the secret ${ref} does not exist or is not open to this queue` };
}
