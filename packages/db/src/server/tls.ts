import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { messageOf, UsageError } from '@millrace/kit/errors';

/** One pair for both ports; with a client CA, callers must show a certificate of it. */
export interface TlsFiles {
  cert: Buffer;
  key: Buffer;
  clientCa: Buffer | undefined;
}

export interface TlsSettings {
  tls_cert?: string | undefined;
  tls_key?: string | undefined;
  client_ca?: string | undefined;
}

/** Reads the files and sees that they fit together; undefined when TLS is not asked for. */
export function readTls(settings: TlsSettings): TlsFiles | undefined {
  const { tls_cert: certFile, tls_key: keyFile, client_ca: caFile } = settings;
  if (certFile === undefined && keyFile === undefined) {
    if (caFile === undefined) return undefined;
    throw new UsageError('client_ca needs tls_cert and tls_key beside it');
  }
  if (certFile === undefined) throw new UsageError('tls_key needs tls_cert beside it');
  if (keyFile === undefined) throw new UsageError('tls_cert needs tls_key beside it');
  const files = {
    cert: read('tls_cert', certFile),
    key: read('tls_key', keyFile),
    clientCa: caFile === undefined ? undefined : read('client_ca', caFile),
  };
  try {
    createSecureContext({ cert: files.cert, key: files.key, ca: files.clientCa });
  } catch (error) {
    throw new UsageError(
      `tls_cert ${certFile} and tls_key ${keyFile} cannot be used: ${messageOf(error)}`,
    );
  }
  return files;
}

function read(setting: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`${setting}: ${messageOf(error)}`);
  }
}
