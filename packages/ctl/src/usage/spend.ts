import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal } from '@millrace/kit/errors';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../tools.js';
import type { SpendBy } from './spend-tables.js';
import { spendScreen } from './spend-screen.js';

type SpendRollup = DaemonSchema<'SpendRollup'>;

export async function showSpend(
  { by, ...flags }: DaemonFlags & { by?: SpendBy },
  tools: Tools,
): Promise<void> {
  const rollup = await readSpend(await daemonApi(flags, tools));
  const { out, json } = tools.terminal;
  out.write(json ? `${JSON.stringify(rollup, null, 2)}\n` : spendScreen(rollup, out, by));
}

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
