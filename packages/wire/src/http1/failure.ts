import { messageOf, systemCode } from '@millrace/kit/errors';
import type { FailureType } from '@millrace/kit/outbound';

/** A failure on its way from where it happened to the outcome. */
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

/** The peer left in the middle. */
export function cutShort(): Failure {
  const text = 'The peer closed the connection before the whole response had arrived';
  return new Failure('CONNECTION_RESET', text);
}

/** What came back is no response, because `reason`. */
export function malformed(reason: string): Failure {
  return new Failure('NETWORK_ERROR', `The response cannot be read: ${reason}`);
}

/** Names whatever a socket reported. */
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
