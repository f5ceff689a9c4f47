import { fromBinary } from '@bufbuild/protobuf';
import * as contract from '../../packages/contract/dist/db.js';
import { PlainDecoder } from '../../packages/db/dist/codec/decoder.js';
import { Deframer } from '../../packages/wire/dist/base/messages.js';

/* gRPC messages with their prefix. The first byte chooses the message. */

const schemas = Object.entries(contract)
  .filter(([name, value]) => /(?:Request|Response)Schema$/.test(name) && value.kind === 'message')
  .map(([, desc]) => ({ desc, decoder: new PlainDecoder(desc, { parts: true }) }));
const maxBytes = 4 * 1024 * 1024;

export function run(input) {
  const { desc, decoder } = schemas[(input[0] ?? 0) % schemas.length];
  const sink = {
    takeMessage: (bytes) => decode(desc, decoder, bytes),
    tryReserve: (bytes) => bytes <= maxBytes,
  };
  const deframer = new Deframer(sink, maxBytes);
  const half = 1 + ((input.length - 1) >> 1);
  if (deframer.push(input, 1, half) === undefined) deframer.push(input, half, input.length);
  decode(desc, decoder, input.subarray(1));
}

/** What our decoder takes, the library takes too. */
function decode(desc, decoder, bytes) {
  if (decoder.decode(bytes) !== undefined) fromBinary(desc, bytes);
  else {
    try {
      fromBinary(desc, bytes);
    } catch {
      // The library reports what is wrong with the message.
    }
  }
}
