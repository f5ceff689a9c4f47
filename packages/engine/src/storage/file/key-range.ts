import type { Transaction } from 'lmdb';

export interface KeyRange {
  /** Included, in either direction. */
  start?: Uint8Array;
  /** Excluded, in either direction. */
  end?: Uint8Array;
  reverse?: boolean | undefined;
  limit?: number;
}

/** A bound below every key: no key is a single zero. */
const belowAll = Buffer.of(0);

/** The range as lmdb takes it. */
export function rangeOptions(range: KeyRange, txn: Transaction | undefined) {
  const options: Record<string, unknown> = {};
  // Without an explicit bound lmdb would use its own, byte 5, and skip most of our keys.
  const [start, end] = range.reverse
    ? [range.start, range.end ?? belowAll]
    : [range.start ?? belowAll, range.end];
  if (start) options['start'] = start;
  if (end) options['end'] = end;
  if (range.reverse) options['reverse'] = true;
  if (range.limit !== undefined) options['limit'] = range.limit;
  if (txn) options['transaction'] = txn;
  return options as { start?: Buffer; end?: Buffer };
}
