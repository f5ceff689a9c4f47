import { HeaderList } from '../header-list.js';
import type { ServerStream } from '../server-stream.js';
import { Outbox } from './outbox.js';

const text = Buffer.from('This is a gRPC server. Use POST with content-type application/grpc.\n');

const headers = {
  405: plainHeaders(405),
  415: plainHeaders(415),
};

function plainHeaders(status: number): HeaderList {
  return new HeaderList({ ':status': String(status), 'content-type': 'text/plain', allow: 'POST' });
}

/** For clients that are not gRPC: they would take a gRPC error, status 200, for a success. */
export function sendPlainError(stream: ServerStream, status: 405 | 415): undefined {
  stream.respond(headers[status]);
  new Outbox(stream).pushFramed(text);
  stream.end();
}
