import { z } from 'zod';
import { messageOf, UsageError } from '../base/errors.js';
import {
  byteSizeExample,
  countExample,
  durationExample,
  formatByteSize,
  formatCount,
  formatDuration,
  parseByteSize,
  parseCount,
  parseDuration,
  UnitError,
} from '../base/units.js';
import { addressExample, addressOf } from './address.js';

/*
 * Types of settings beyond those of YAML. Where the written form differs from the value, give the
 * default in written form with `prefault`: `duration().prefault('15m')`.
 */

/** A file or directory; see `SettingNotes.path`. */
export function path() {
  return z.string().min(1).meta({ path: true, expected: 'a path', placeholder: 'path' });
}

/** `host:port`. */
export function address() {
  return z
    .string()
    .transform(reading(addressOf))
    .meta({ expected: addressExample, placeholder: 'host:port' });
}

/** Text that is never shown. */
export function secret() {
  return z.string().min(1).meta({ secret: true, placeholder: 'secret' });
}

export interface Limits {
  min?: number;
  max?: number;
}

/** `1h30m`, in milliseconds. */
export function duration(limits: Limits = {}) {
  return measure(z.string(), durationExample, 'duration', parseDuration, formatDuration, limits);
}

const wholeOrText = z.union([z.int().min(0), z.string()]);

/** `256KiB` or a number of bytes. */
export function byteSize(limits: Limits = {}) {
  return measure(wholeOrText, byteSizeExample, 'size', parseByteSize, formatByteSize, limits);
}

/** `200k` or a number. */
export function count(limits: Limits = {}) {
  return measure(wholeOrText, countExample, 'count', parseCount, formatCount, limits);
}

function measure<S extends z.ZodType<string | number>>(
  written: S,
  example: string,
  placeholder: string,
  parse: (text: string) => number,
  format: (value: number) => string,
  { min = 0, max = Number.MAX_SAFE_INTEGER }: Limits,
) {
  let expected = example;
  if (min > 0) expected += `, at least ${format(min)}`;
  if (max < Number.MAX_SAFE_INTEGER) expected += `, at most ${format(max)}`;
  return written
    .transform(
      reading((text: string | number) => {
        const value = parse(String(text));
        if (value < min || value > max) throw UnitError.expected(expected, String(text));
        return value;
      }),
    )
    .meta({ expected, placeholder });
}

// Only UnitError and UsageError are mistakes of the user.
function reading<From, To>(read: (written: From) => To) {
  return (written: From, context: z.RefinementCtx): To => {
    try {
      return read(written);
    } catch (error) {
      if (!(error instanceof UnitError || error instanceof UsageError)) throw error;
      context.addIssue({ code: 'custom', message: messageOf(error) });
      return z.NEVER;
    }
  };
}
