import type { FieldError } from '@millrace/kit/errors';
import { parseTimestamp, UnitError } from '@millrace/kit/units';

/**
 * Milliseconds of a time that fits the format of the contract. The few that have no four-digit
 * year in UTC fit it and cannot be used all the same: they become a fault, and NaN.
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
