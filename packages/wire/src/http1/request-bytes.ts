import type { Socket } from 'node:net';

export interface OutgoingRequest {
  method: string;
  path: string;
  /** The value of the Host header. */
  host: string;
  /** Name and value in turn; none of those that the connection decides about. */
  headers: readonly string[];
  body: Uint8Array | string | undefined;
}

/** Beyond this a copy costs more than a second piece for the system to gather. */
const mostCopiedBytes = 16_384;
const methodsWithBody = new Set(['POST', 'PUT', 'PATCH']);

/**
 * Some servers answer HEAD with a body after all, and do not read the body of a request that
 * should have none: what is left of it would be taken for the next message.
 */
export function endsConnection({ method, body }: OutgoingRequest): boolean {
  if (method === 'HEAD') return true;
  return body !== undefined && body.length > 0 && !methodsWithBody.has(method);
}

/** Hands the whole request to the socket, in one piece where it is small. */
export function writeRequest(socket: Socket, request: OutgoingRequest, isLast: boolean): void {
  const { body } = request;
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const bodyBytes = bytes?.length ?? 0;
  const head = headOf(request, bodyBytes, isLast);
  if (bytes === undefined || bodyBytes === 0) return void socket.write(head, 'latin1');
  if (bodyBytes > mostCopiedBytes) {
    socket.cork();
    socket.write(head, 'latin1');
    socket.write(bytes);
    return socket.uncork();
  }
  const whole = Buffer.allocUnsafe(head.length + bodyBytes);
  whole.write(head, 'latin1');
  whole.set(bytes, head.length);
  socket.write(whole);
}

function headOf(request: OutgoingRequest, bodyBytes: number, isLast: boolean): string {
  const { method, headers } = request;
  let head = `${method} ${request.path} HTTP/1.1\r\nhost: ${request.host}\r\n`;
  head += isLast ? 'connection: close\r\n' : 'connection: keep-alive\r\n';
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]!}: ${headers[i + 1]!}\r\n`;
  if (bodyBytes > 0 || methodsWithBody.has(method)) head += `content-length: ${bodyBytes}\r\n`;
  return `${head}\r\n`;
}
