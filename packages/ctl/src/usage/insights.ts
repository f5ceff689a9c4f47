import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { parseSince } from '../base/since.js';
import { insightsScreen } from './insights-screen.js';

type Insights = DaemonSchema<'Insights'>;

export async function showInsights(
  { since, ...flags }: DaemonFlags & { since?: string },
  tools: Tools,
): Promise<void> {
  const from = since === undefined ? undefined : parseSince(since, systemClock.now()).text;
  const api = await daemonApi(flags, tools);
  const insights = await api.call('getInsights', {
    query: from === undefined ? {} : { since: from },
  });
  if (!isInsights(insights)) {
    throw new Refusal(
      'UNAVAILABLE',
      `${api.url} returned no insights. It may be another version of Millrace.`,
    );
  }
  const { out, json } = tools.terminal;
  out.write(json ? `${JSON.stringify(insights, null, 2)}\n` : insightsScreen(insights, out));
}

function isInsights(value: unknown): value is Insights {
  if (typeof value !== 'object' || value === null) return false;
  const { durations, busiest_hours: hours, error_rates: rates } = value as Partial<Insights>;
  return durations !== undefined && Array.isArray(hours) && Array.isArray(rates);
}
