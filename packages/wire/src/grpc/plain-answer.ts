import { HeaderList } from '../header-list.js';
import type { ServerStream } from '../server-stream.js';
import { Outbox } from './outbox.js';

const text = Buffer.from('gRPC is spoken here: POST with content-type application/grpc.\n');

const headers = {
  405: plainHeaders(405),
  415: plainHeaders(415),
};

function plainHeaders(status: number): HeaderList {
  return new HeaderList({ ':status': String(status), 'content-type': 'text/plain', allow: 'POST' });
}

/** For those who do not speak gRPC: they would take any answer of it for a good one. */
export function refusePlainly(stream: ServerStream, status: 405 | 415): undefined {
  stream.respond(headers[status]);
  new Outbox(stream).pushFramed(text);
  stream.end();
}
