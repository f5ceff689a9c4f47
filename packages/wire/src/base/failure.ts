import { messageOf, systemCode } from '@millrace/kit/errors';
import type { FailureType } from '@millrace/kit/outbound';

/** A failed request, with its public error type. */
export class Failure extends Error {
  override readonly name = 'Failure';

  constructor(
    readonly errorType: FailureType,
    message: string,
    readonly remoteIp?: string,
    /** The system's own code, such as ENETUNREACH. */
    readonly osCode = '',
  ) {
    super(message);
  }
}

const typeByCode: Readonly<Record<string, FailureType>> = {
  ECONNREFUSED: 'CONNECTION_REFUSED',
  ECONNRESET: 'CONNECTION_RESET',
  ECONNABORTED: 'CONNECTION_RESET',
  EPIPE: 'CONNECTION_RESET',
  ETIMEDOUT: 'TIMEOUT',
};

/** The peer closed the connection before the response was complete. */
export function prematureClose(): Failure {
  const text = 'The peer closed the connection before the response was complete';
  return new Failure('CONNECTION_RESET', text);
}

/** The response is not valid HTTP/1.1. */
export function malformed(reason: string): Failure {
  return new Failure('NETWORK_ERROR', `The response is not valid HTTP: ${reason}`);
}

/** Maps a socket error to a failure type. */
export function failureOf(error: unknown, remoteIp?: string): Failure {
  if (error instanceof Failure) return error;
  const code = systemCode(error);
  const message = messageOf(error);
  const text = code === '' || message.includes(code) ? message : `${message} (${code})`;
  return new Failure(typeOf(code), text, remoteIp, code);
}

function typeOf(code: string): FailureType {
  if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_')) return 'TLS_FAILURE';
  return typeByCode[code] ?? 'NETWORK_ERROR';
}
