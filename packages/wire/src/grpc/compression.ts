import type { Transform } from 'node:stream';
import { createGunzip, createInflate } from 'node:zlib';
import { outOfMemory } from './deframer.js';
import { failed, type GrpcStatus } from './status.js';

const encodings: ReadonlyMap<string, (() => Transform) | undefined> = new Map([
  ['identity', undefined],
  ['deflate', createInflate],
  ['gzip', createGunzip],
]);

export const acceptedEncodings = [...encodings.keys()].join(',');

export function isEncoding(name: string): boolean {
  return encodings.has(name);
}

export interface DecompressOptions {
  readonly encoding: string;
  readonly maxBytes: number;
  /** Room for what comes out; whoever asked releases it. */
  tryReserve(bytes: number): boolean;
}

/** The message as it was before it was compressed; rejects with the status the call ends in. */
export function decompressed(bytes: Buffer, options: DecompressOptions): Promise<Buffer> {
  const { encoding, maxBytes, tryReserve } = options;
  const create = encodings.get(encoding);
  return new Promise((resolve, reject: (status: GrpcStatus) => void) => {
    if (!create) {
      return reject(failed('INTERNAL', 'A message is compressed, but no grpc-encoding says how.'));
    }
    const stream = create();
    const chunks: Buffer[] = [];
    let length = 0;
    const refuse = (status: GrpcStatus) => {
      stream.destroy();
      chunks.length = 0;
      reject(status);
    };
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > maxBytes) {
        const text = `A message becomes more than the ${maxBytes} bytes that fit.`;
        return refuse(failed('RESOURCE_EXHAUSTED', text));
      }
      if (!tryReserve(chunk.length)) return refuse(outOfMemory);
      chunks.push(chunk);
    });
    stream.on('end', () => resolve(Buffer.concat(chunks, length)));
    stream.on('error', (error) =>
      refuse(failed('INTERNAL', `A message is not ${encoding}: ${error.message}.`)),
    );
    stream.end(bytes);
  });
}
