import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal } from '@millrace/kit/errors';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../tools.js';
import { readSpend } from '../usage/spend.js';
import { costScreen } from './cost-screen.js';

type SavingsReport = DaemonSchema<'SavingsReport'>;

/** What was spent beside what was not. Under --json: both documents as the REST API has them. */
export async function showCost(flags: DaemonFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  const [spend, savings] = await Promise.all([readSpend(api), api.call('getSavings')]);
  if (!isSavingsReport(savings)) {
    throw new Refusal(
      'UNAVAILABLE',
      `${api.url} answers with no savings report. Is it another version of Millrace?`,
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
