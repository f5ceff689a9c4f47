import { messageOf, systemCode, UsageError } from '@millrace/kit/errors';
import { Client } from './connection/client.js';
import { clientConfig } from './connection/connections.js';

/** The driver silently treats every other value as verify-full. */
const sslModes = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'];

/**
 * Refuses an invalid database URL. The URL is never shown: it may contain a password in any part.
 */
export function checkUrl(url: string): void {
  const [, sslMode] = /[?&]sslmode=([^&#]*)/.exec(url) ?? [];
  if (sslMode !== undefined && !sslModes.includes(sslMode)) {
    throw new UsageError(`storage: sslmode must be one of ${sslModes.join(', ')}.`);
  }
  try {
    // Parses the URL and reads the files that it names; does not connect.
    void new Client(clientConfig(url, {}));
  } catch (error) {
    const isFile = error instanceof Error && 'syscall' in error;
    if (isFile) throw new UsageError(`storage: ${messageOf(error)}.`);
    throw new UsageError(
      'storage: this is not a PostgreSQL URL such as postgres://user@host/db. Encode ' +
        '/ # ? @ % in a password as %2F %23 %3F %40 %25, or set PGPASSWORD.',
    );
  }
}

/** Wrong user, password, database or privilege: PostgreSQL describes it. */
const refusedCodes = /^(?:3D000|42501|3F000|28\w{3})$/;
const untrustedCodes =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|CERT_\w+|ERR_TLS_\w+)$/;
const noTls = /does not support SSL connections/;

/** Why the settings cannot work; undefined if the error has another cause. */
export function settingsProblem(error: unknown): string | undefined {
  const code = systemCode(error);
  const message = messageOf(error);
  if (refusedCodes.test(code)) return `PostgreSQL says: ${message}.${hintFor(message)}`;
  if (untrustedCodes.test(code)) {
    return (
      `the certificate of PostgreSQL is not trusted: ${message}. Name its authority with ` +
      'sslrootcert=<file> in the URL, or use sslmode=no-verify.'
    );
  }
  if (!noTls.test(message)) return undefined;
  return 'the URL requires TLS, but PostgreSQL does not offer it: enable it there, or use sslmode=disable.';
}

function hintFor(message: string): string {
  if (!message.startsWith('permission denied for database')) return '';
  return ' Let its owner run CREATE SCHEMA millrace AUTHORIZATION <the role of the URL>.';
}
