import { ScalarType } from '@bufbuild/protobuf';
import type { BackwardWriter } from './backward-writer.js';

export type WriteValue = (to: BackwardWriter, value: unknown) => void;

// Protobuf wire types.
const [varint, fixed64] = [0, 1];
export const delimited = 2;

/** The shared empty byte array. */
export const noBytes = new Uint8Array(0);

/** How a scalar type is encoded. */
interface Scalar {
  readonly wire: number;
  /** The default value, which is not written. */
  readonly empty: unknown;
  readonly write: WriteValue;
}

const wholeNumber: Scalar = {
  wire: varint,
  empty: 0,
  write: (to, value) =>
    (value as number) < 0 ? to.bigint(BigInt(value as number)) : to.number(value as number),
};
const wholeBigint: Scalar = {
  wire: varint,
  empty: 0n,
  write: (to, value) => to.bigint(value as bigint),
};
export const scalars: ReadonlyMap<ScalarType, Scalar> = new Map([
  [ScalarType.INT32, wholeNumber],
  [ScalarType.UINT32, wholeNumber],
  [ScalarType.INT64, wholeBigint],
  [ScalarType.UINT64, wholeBigint],
  [
    ScalarType.FIXED64,
    { wire: fixed64, empty: 0n, write: (to, value) => to.fixed64(value as bigint) },
  ],
  [
    ScalarType.DOUBLE,
    { wire: fixed64, empty: 0, write: (to, value) => to.double(value as number) },
  ],
  [ScalarType.BOOL, { wire: varint, empty: false, write: (to, value) => to.number(value ? 1 : 0) }],
  [
    ScalarType.STRING,
    {
      wire: delimited,
      empty: '',
      write: (to, value) => to.string(value as string),
    },
  ],
  [
    ScalarType.BYTES,
    { wire: delimited, empty: noBytes, write: (to, value) => to.bytes(value as Uint8Array) },
  ],
]);
