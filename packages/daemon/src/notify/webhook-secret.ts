import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { messageOf, systemCode, UsageError } from '@millrace/kit/errors';
import type { Random } from '@millrace/kit/random';
import { newSigningSecret, signingKeyOf } from '@millrace/kit/webhooks';

/**
 * The signing key of alerts: from the given secret, or from the file, which is created when
 * missing.
 */
export function webhookKey(
  given: string | undefined,
  { file, random }: { file: string; random: Random },
): Uint8Array {
  if (given !== undefined) return keyOf(given, 'notify.webhook_secret');
  const text = secretIn(file);
  if (text !== undefined) return keyOf(text, file);
  const made = newSigningSecret(random);
  // Written atomically: after a crash the file is complete or absent.
  writeFileSync(`${file}.new`, `${made}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return keyOf(made, file);
}

function secretIn(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw new UsageError(`${file} cannot be read: ${messageOf(error)}`);
  }
}

/** Never includes the value in errors: a malformed secret is still a secret. */
function keyOf(secret: string, where: string): Uint8Array {
  const key = signingKeyOf(secret);
  if (key) return key;
  const example = '"whsec_" followed by base64, as `openssl rand -base64 32` prints it';
  throw new UsageError(`${where} must be ${example}`);
}
