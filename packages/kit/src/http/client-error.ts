import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';

/** The response to bytes that are not an HTTP request. */
export interface MalformedResponse {
  contentType: string;
  body: string;
  headers?: Readonly<Record<string, string>>;
}

/**
 * Responds to bytes that are not an HTTP request, directly on the socket. Returns the status, or
 * undefined when no response is possible.
 */
export function respondToClientError(
  error: Error & { code?: string },
  socket: Socket,
  isResponding: boolean,
  malformed: (status: number, detail: string) => MalformedResponse,
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
      return [431, 'The request headers are larger than 16 KiB.'];
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return [413, 'The chunk extensions of the request are too long.'];
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [408, 'The request did not arrive in time.'];
    default:
      return [400, 'The bytes received are not an HTTP request.'];
  }
}
