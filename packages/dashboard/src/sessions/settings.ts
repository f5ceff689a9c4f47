import { useQuery } from '@tanstack/react-query';
import { queries } from '../api/queries.js';

/** The settings of the context guard that the pages use. */
export interface GuardSettings {
  warn: number;
  critical: number;
  guard: boolean;
  autoCompact: boolean;
  forceCompact: boolean;
}

/** The guard settings of the daemon; the defaults until they are loaded. */
export function useGuardSettings(): GuardSettings {
  const { data } = useQuery(queries.config());
  const entry = (key: string) => data?.entries.find((one) => one.key === `tokens.${key}`)?.value;
  return {
    warn: sizeOf(entry('warn')) ?? 200_000,
    critical: sizeOf(entry('critical')) ?? 400_000,
    guard: entry('guard') !== false,
    autoCompact: entry('auto_compact') !== false,
    forceCompact: entry('force_compact') === true,
  };
}

/** A number, or a size such as `200k`. */
export function sizeOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value > 0 ? value : undefined;
  const found = /^(\d+(?:\.\d+)?)([kKmM]?)$/.exec(String(value));
  if (!found) return undefined;
  const unit = { k: 1000, m: 1_000_000 }[found[2]!.toLowerCase()] ?? 1;
  return Number(found[1]) * unit;
}
