import { gunzip, inflate, type InputType, type ZlibOptions } from 'node:zlib';
import { failed, type GrpcStatus } from './status.js';

type Decompress = (
  bytes: InputType,
  options: ZlibOptions,
  done: (error: Error | null, result: Buffer) => void,
) => void;

const encodings: ReadonlyMap<string, Decompress | undefined> = new Map([
  ['identity', undefined],
  ['deflate', inflate as Decompress],
  ['gzip', gunzip as Decompress],
]);

export const acceptedEncodings = [...encodings.keys()].join(',');

export function isEncoding(name: string): boolean {
  return encodings.has(name);
}

/** The message as it was before it was compressed; rejects with the status the call ends in. */
export function decompressed(bytes: Buffer, encoding: string, mostBytes: number): Promise<Buffer> {
  const decompress = encodings.get(encoding);
  return new Promise((resolve, reject: (status: GrpcStatus) => void) => {
    if (!decompress) {
      return reject(failed('INTERNAL', 'A message is compressed, but no grpc-encoding says how.'));
    }
    decompress(bytes, { maxOutputLength: mostBytes }, (error, message) =>
      error ? reject(problemOf(error, encoding, mostBytes)) : resolve(message),
    );
  });
}

function problemOf(error: Error & { code?: string }, encoding: string, most: number): GrpcStatus {
  return error.code === 'ERR_BUFFER_TOO_LARGE'
    ? failed('RESOURCE_EXHAUSTED', `A message becomes more than the ${most} bytes that fit.`)
    : failed('INTERNAL', `A message is not ${encoding}: ${error.message}.`);
}
