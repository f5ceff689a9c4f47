import { fail } from '../core/refusals.js';

const unitsMs: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** `60`, `30s` or `5m` in milliseconds; undefined when absent. */
export function parseStep(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, count, unit = 's'] = /^([1-9]\d{0,6})([smhd])?$/.exec(text) ?? [];
  if (count) return Number(count) * unitsMs[unit]!;
  throw fail(
    'INVALID_REQUEST',
    `step must be a width such as 60, 30s or 5m, not ${JSON.stringify(text.slice(0, 60))}.`,
  );
}
