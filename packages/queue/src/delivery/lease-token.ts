import type { Random } from '@millrace/kit/random';

/** Unguessable, and new with each claim. */
export function newLeaseToken(random: Random): string {
  return `l1.${Buffer.from(random.bytes(18)).toString('base64url')}`;
}
