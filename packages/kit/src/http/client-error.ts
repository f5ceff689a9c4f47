import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';

/** What bytes that are no HTTP request are answered with. */
export interface MalformedAnswer {
  contentType: string;
  body: string;
  headers?: Readonly<Record<string, string>>;
}

/**
 * Answers bytes that are no HTTP request, on the bare socket since no request object exists.
 * Returns the status, or undefined when nobody can be answered.
 */
export function answerClientError(
  error: Error & { code?: string },
  socket: Socket,
  isResponding: boolean,
  malformed: (status: number, detail: string) => MalformedAnswer,
): number | undefined {
  if (error.code === 'ECONNRESET' || !socket.writable || isResponding) {
    socket.destroy();
    return undefined;
  }
  const [status, detail] = meaningOf(error.code);
  const { contentType, body, headers = {} } = malformed(status, detail);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n` +
      'Connection: close\r\n' +
      `Content-Type: ${contentType}\r\n${lines.join('')}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return status;
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
