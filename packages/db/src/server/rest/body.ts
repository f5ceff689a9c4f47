import type { IncomingMessage } from 'node:http';
import { refuse } from '../../engine/refusal.js';
import { mostRequestBytes, tooLarge } from '../grpc/codec.js';
import { badField, parseJson } from '../service/values.js';

const noBytes = Buffer.alloc(0);

/** The bytes of the body, at once when there are none; at most as many as a message may have. */
export function readBody(request: IncomingMessage): Buffer | Promise<Buffer> {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  if (coding === undefined && (length === undefined || length === '0')) return noBytes;
  const announced = Number(length ?? 0);
  return new Promise((resolve, reject) => {
    if (announced > mostRequestBytes) {
      // Read on, so that a client which sends first and listens later hears the answer.
      request.resume();
      reject(tooLarge(announced));
      return;
    }
    const left = () => reject(refuse('CANCELLED', 'The caller left before its body ended.'));
    if (request.destroyed) return left();
    const chunks: Buffer[] = [];
    let length = 0;
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= mostRequestBytes) return;
      request.removeListener('data', onData);
      request.removeListener('end', onEnd);
      request.resume();
      reject(tooLarge(undefined));
    };
    let isEnded = false;
    const onEnd = () => {
      isEnded = true;
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length));
    };
    request.on('data', onData);
    request.on('end', onEnd);
    request.on('close', () => {
      if (!isEnded) left();
    });
  });
}

/** The body as JSON; nothing at all is an empty object. */
export function parseBody(request: IncomingMessage, bytes: Buffer): unknown {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw badField('Content-Encoding', `${encoding} is not taken: send the body as it is`);
  }
  if (bytes.length === 0) return {};
  return parseJson(bytes, (problem) => refuse('BAD_REQUEST', `The body ${problem}.`));
}
