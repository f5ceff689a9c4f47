import { STATUS_CODES } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { bareProblem } from './problem.js';
import type { Problem } from './problem.js';

/**
 * Answers bytes that are no HTTP request, on the bare socket since no request object exists.
 * Returns the status, or undefined when there was no one left to answer.
 */
export function answerClientError(
  error: Error & { code?: string },
  socket: Socket,
  requestId: string,
  shapeProblem: (problem: Problem) => object,
): number | undefined {
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) {
    socket.destroy();
    return undefined;
  }
  const [status, detail] = meaningOf(error.code);
  const body = JSON.stringify(shapeProblem(bareProblem(status, detail, requestId)));
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      'Connection: close\r\n' +
      'Content-Type: application/problem+json\r\n' +
      `X-Request-Id: ${requestId}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return status;
}

/** True while an answer is on its way, into which a second one must not be written. */
function isAnswering(socket: Socket): boolean {
  const { _httpMessage: message } = socket as Socket & { _httpMessage?: ServerResponse | null };
  return message?.headersSent === true;
}

function meaningOf(code: string | undefined): [status: number, detail: string] {
  switch (code ?? '') {
    case 'HPE_HEADER_OVERFLOW':
      return [431, 'The headers of the request are longer than 16 KiB'];
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return [413, 'The chunk extensions of the request are too long'];
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [408, 'The request did not arrive in time'];
    default:
      return [400, 'The bytes received are not an HTTP request'];
  }
}
