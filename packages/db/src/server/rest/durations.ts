import type { Duration } from '@bufbuild/protobuf/wkt';
import { badField } from '../service/values.js';
import { kindOf } from './kind-of.js';

const pattern = /^(\d{1,12})(?:\.(\d{1,9}))?s$/;

/** Parses `3.5s`. */
export function durationFrom(value: unknown, path: string): Duration {
  const found = typeof value === 'string' ? pattern.exec(value) : null;
  if (!found) {
    const given = typeof value === 'string' ? JSON.stringify(value) : kindOf(value);
    throw badField(path, `must be seconds such as "3.5s", not ${given}`);
  }
  return {
    $typeName: 'google.protobuf.Duration',
    seconds: BigInt(found[1]!),
    nanos: Number((found[2] ?? '').padEnd(9, '0')),
  };
}

/** Formats `3.500s`: zero, three, six or nine fraction digits. */
export function durationText({ seconds, nanos }: Pick<Duration, 'seconds' | 'nanos'>): string {
  if (nanos === 0) return `${seconds}s`;
  const digits = String(nanos)
    .padStart(9, '0')
    .replace(/(?:000){1,2}$/, '');
  return `${seconds}.${digits}s`;
}
