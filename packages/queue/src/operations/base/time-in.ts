import type { FieldError } from '@millrace/kit/errors';
import { parseTimestamp, UnitError } from '@millrace/kit/units';

/**
 * Parses a time in the format of the contract. A time whose year in UTC has not four digits
 * matches the format but is refused: it adds a fault and returns NaN.
 */
export function timeIn(text: string, pointer: string, faults: FieldError[]): number {
  try {
    return parseTimestamp(text);
  } catch (error) {
    if (!(error instanceof UnitError)) throw error;
    faults.push({ pointer, message: error.message });
    return Number.NaN;
  }
}
