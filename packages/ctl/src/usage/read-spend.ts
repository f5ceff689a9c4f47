import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal } from '@millrace/kit/errors';
import type { DaemonApi } from '../daemon/api.js';

type SpendRollup = DaemonSchema<'SpendRollup'>;

export async function readSpend(api: DaemonApi): Promise<SpendRollup> {
  const rollup = await api.call('getSpend');
  if (isRollup(rollup)) return rollup;
  throw new Refusal(
    'UNAVAILABLE',
    `${api.url} returned no spend rollup. It may be another version of Millrace.`,
  );
}

function isRollup(value: unknown): value is SpendRollup {
  if (typeof value !== 'object' || value === null) return false;
  const { total_usd: total, by_day: days, by_agent: agents, by_repo: repos } = value as SpendRollup;
  return typeof total === 'number' && [days, agents, repos].every((rows) => Array.isArray(rows));
}
