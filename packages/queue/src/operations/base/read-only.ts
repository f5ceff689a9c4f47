import type { FieldError } from '@millrace/kit/errors';

/** Read-only fields may be sent back as they were read, so that a body can be edited and sent. */
export function readOnlyFaults(
  given: object,
  current: Readonly<Record<string, unknown>>,
  what: string,
): FieldError[] {
  const changed = Object.entries(given).filter(
    ([key, value]) => value !== undefined && value !== current[key],
  );
  return changed.map(([key]) => {
    const value = current[key];
    const now = value === undefined ? `the ${what} does not exist yet` : `it is ${String(value)}`;
    return { pointer: `/${key}`, message: `is read-only (${now}); leave it out` };
  });
}
