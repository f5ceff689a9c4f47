import { readFileSync } from 'node:fs';
import { createSecureContext, type TlsOptions } from 'node:tls';
import { messageOf, UsageError } from '../base/errors.js';

/** One certificate for both ports; with a client CA, callers need a certificate signed by it. */
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

/** The files as options of a server of Node. */
export function tlsOptions(files: TlsFiles | undefined): TlsOptions | undefined {
  if (!files) return undefined;
  const { cert, key, clientCa } = files;
  const callers = clientCa && { ca: clientCa, requestCert: true, rejectUnauthorized: true };
  return { cert, key, ...callers };
}

/** Reads and validates the files; undefined when TLS is off. */
export function readTls(settings: TlsSettings): TlsFiles | undefined {
  const { tls_cert: certFile, tls_key: keyFile, client_ca: caFile } = settings;
  if (certFile === undefined && keyFile === undefined) {
    if (caFile === undefined) return undefined;
    throw new UsageError('client_ca requires tls_cert and tls_key');
  }
  if (certFile === undefined) throw new UsageError('tls_key requires tls_cert');
  if (keyFile === undefined) throw new UsageError('tls_cert requires tls_key');
  const files = {
    cert: read('tls_cert', certFile),
    key: read('tls_key', keyFile),
    clientCa: caFile === undefined ? undefined : read('client_ca', caFile),
  };
  try {
    createSecureContext({ cert: files.cert, key: files.key, ca: files.clientCa });
  } catch (error) {
    throw new UsageError(
      `cannot use tls_cert ${certFile} with tls_key ${keyFile}: ${messageOf(error)}`,
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
