import { createServer, STATUS_CODES, type Server, type ServerOptions } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Log } from '@millrace/kit/log';
import { refuse } from '../../engine/refusal.js';
import { statusJson } from '../rest/errors.js';
import type { RestFace } from '../rest/face.js';
import { statusOf } from '../status.js';
import type { TlsFiles } from '../tls.js';

const limits: ServerOptions = {
  noDelay: true,
  keepAlive: true,
  keepAliveTimeout: 72_000,
  headersTimeout: 30_000,
  // The time a caller has to send its whole request.
  requestTimeout: 120_000,
};

export function httpServer(face: RestFace, tls: TlsFiles | undefined, log: Log): Server {
  const server = tls
    ? createSecureServer(
        {
          ...limits,
          cert: tls.cert,
          key: tls.key,
          ...(tls.clientCa && { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true }),
        },
        face.handle,
      )
    : createServer(limits, face.handle);
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    const status = answerNonsense(error, socket);
    if (status) log.info({ status, reason: error.code }, 'not a request');
  });
  return server;
}

/** Answers bytes that are no HTTP request. Returns the status, or undefined for no answer. */
function answerNonsense(error: Error & { code?: string }, socket: Socket): number | undefined {
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) {
    socket.destroy();
    return undefined;
  }
  const [status, text] = meaningOf(error.code);
  const body = JSON.stringify(statusJson(statusOf(refuse('BAD_REQUEST', text))));
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      'Connection: close\r\n' +
      'Content-Type: application/json\r\n' +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return status;
}

/** True while an answer is on its way, into which a second one must not be written. */
function isAnswering(socket: Socket): boolean {
  const { _httpMessage: message } = socket as Socket & {
    _httpMessage?: { headersSent: boolean } | null;
  };
  return message?.headersSent === true;
}

function meaningOf(code: string | undefined): [status: number, text: string] {
  switch (code ?? '') {
    case 'HPE_HEADER_OVERFLOW':
      return [431, 'The headers of the request are longer than 16 KiB.'];
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [408, 'The request did not arrive in time.'];
    default:
      return [400, 'The bytes received are not an HTTP request.'];
  }
}
