import { messageOf, systemCode, UsageError } from '@millrace/kit/errors';
import { Client } from './client.js';
import { clientConfig } from './connections.js';

/** The driver takes every other word for verify-full without saying so. */
const sslModes = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'];

/**
 * Refuses a URL that can never lead to a database. It is never shown: there may be a password in
 * it, also where the driver would not look for one.
 */
export function checkUrl(url: string): void {
  const [, sslMode] = /[?&]sslmode=([^&#]*)/.exec(url) ?? [];
  if (sslMode !== undefined && !sslModes.includes(sslMode)) {
    throw new UsageError(`storage: sslmode must be one of ${sslModes.join(', ')}.`);
  }
  try {
    // It reads the URL, and the files that it names, and connects to nothing.
    void new Client(clientConfig(url, {}));
  } catch (error) {
    const isFile = error instanceof Error && 'syscall' in error;
    if (isFile) throw new UsageError(`storage: ${messageOf(error)}.`);
    throw new UsageError(
      'storage: this is no URL of a PostgreSQL such as postgres://user@host/db. Signs such as ' +
        '/ # ? @ % in a password are written as %2F %23 %3F %40 %25, or it stands in PGPASSWORD.',
    );
  }
}

/** A name, a password, a database, a right: PostgreSQL says what is wrong with it. */
const refusedCodes = /^(?:3D000|42501|3F000|28\w{3})$/;
const untrustedCodes =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|CERT_\w+|ERR_TLS_\w+)$/;
const noTls = /does not support SSL connections/;

/** What is wrong with the settings, if that is why the database cannot be used; else undefined. */
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
  return 'the URL asks for TLS, and PostgreSQL has none: turn it on there, or use sslmode=disable.';
}

function hintFor(message: string): string {
  if (!message.startsWith('permission denied for database')) return '';
  return ' Let its owner run CREATE SCHEMA millrace AUTHORIZATION <the role of the URL>.';
}
