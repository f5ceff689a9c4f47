import { headerBlock } from '../http2/header-block.js';
import type { Http2Stream } from '../http2/stream.js';
import { Outbox } from './outbox.js';

const text = Buffer.from('gRPC is spoken here: POST with content-type application/grpc.\n');

const blocks = {
  405: plainHeaders(405),
  415: plainHeaders(415),
};

function plainHeaders(status: number): Buffer {
  return headerBlock({ ':status': String(status), 'content-type': 'text/plain', allow: 'POST' });
}

/** For those who do not speak gRPC: they would take any answer of it for a good one. */
export function refusePlainly(stream: Http2Stream, status: 405 | 415): undefined {
  stream.respond(blocks[status]);
  new Outbox(stream).pushFramed(text);
  stream.end();
}
