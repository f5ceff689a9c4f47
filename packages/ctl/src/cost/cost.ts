import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal } from '@millrace/kit/errors';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { readWholeSpend } from '../usage/whole-spend.js';
import { costScreen } from './cost-screen.js';

type SavingsReport = DaemonSchema<'SavingsReport'>;

/** Shows spend beside savings. With --json: both documents of the REST API. */
export async function showCost(flags: DaemonFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  const [spend, savings] = await Promise.all([readWholeSpend(api, tools), api.call('getSavings')]);
  if (!isSavingsReport(savings)) {
    throw new Refusal(
      'UNAVAILABLE',
      `${api.url} returned no savings report. It may be another version of Millrace.`,
    );
  }
  const { out, json } = tools.terminal;
  const document = { spend, savings };
  out.write(json ? `${JSON.stringify(document, null, 2)}\n` : costScreen(document, out));
}

function isSavingsReport(value: unknown): value is SavingsReport {
  if (typeof value !== 'object' || value === null) return false;
  const { axes } = value as Partial<SavingsReport>;
  return typeof axes?.context === 'object' && typeof axes.offload === 'object';
}
