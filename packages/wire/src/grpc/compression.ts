import type { Transform } from 'node:stream';
import { createGunzip, createInflate } from 'node:zlib';
import { invalid, outOfMemory } from '../base/deframer.js';
import { tooLarge, type GrpcStatus } from '../base/status.js';

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
  /** Reserves memory for the decompressed bytes; the caller releases it. */
  tryReserve(bytes: number): boolean;
}

/** Decompresses a message; rejects with the status that ends the call. */
export function decompressed(bytes: Buffer, options: DecompressOptions): Promise<Buffer> {
  const { encoding, maxBytes, tryReserve } = options;
  const create = encodings.get(encoding);
  return new Promise((resolve, reject: (status: GrpcStatus) => void) => {
    if (!create) {
      return reject(invalid('A message is compressed, but the call has no grpc-encoding.'));
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
        const text = `A decompressed message exceeds the limit of ${maxBytes} bytes.`;
        return refuse(tooLarge(text, maxBytes));
      }
      if (!tryReserve(chunk.length)) return refuse(outOfMemory);
      chunks.push(chunk);
    });
    stream.on('end', () => resolve(Buffer.concat(chunks, length)));
    stream.on('error', (error) =>
      refuse(invalid(`A message is not valid ${encoding}: ${error.message}.`)),
    );
    stream.end(bytes);
  });
}
