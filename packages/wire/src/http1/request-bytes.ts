import type { Socket } from 'node:net';

export interface OutgoingRequest {
  method: string;
  path: string;
  /** The value of the Host header. */
  host: string;
  /** Flat list of names and values, without hop-by-hop fields. */
  headers: readonly string[];
  body: Uint8Array | string | undefined;
}

/** Larger bodies are written separately, because copying costs more. */
const maxCopiedBytes = 16_384;
const methodsWithBody = new Set(['POST', 'PUT', 'PATCH']);

/**
 * Some servers send a body in response to HEAD, or ignore the body of methods that usually have
 * none. The leftover bytes would be parsed as the next message, so the connection is closed.
 */
export function endsConnection({ method, body }: OutgoingRequest): boolean {
  if (method === 'HEAD') return true;
  return body !== undefined && body.length > 0 && !methodsWithBody.has(method);
}

/** Writes the request, in one write when it is small. */
export function writeRequest(socket: Socket, request: OutgoingRequest, isLast: boolean): void {
  const { body } = request;
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const bodyBytes = bytes?.length ?? 0;
  const head = headOf(request, bodyBytes, isLast);
  if (bytes === undefined || bodyBytes === 0) return void socket.write(head, 'latin1');
  if (bodyBytes > maxCopiedBytes) {
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
