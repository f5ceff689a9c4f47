import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { spendScreen } from './spend-screen.js';
import { spendTables, type SpendBy } from './spend-tables.js';
import { readWholeSpend } from './whole-spend.js';

export async function showSpend(
  { by, ...flags }: DaemonFlags & { by?: SpendBy },
  tools: Tools,
): Promise<void> {
  const rollup = await readWholeSpend(await daemonApi(flags, tools), tools);
  const { format } = tools.terminal;
  // The rollup has several tables; names are those of the one that was chosen.
  const isList = format === 'csv' || (format === 'name' && by !== undefined);
  const document = isList ? rollup[spendTables[by ?? 'day']] : rollup;
  tools.terminal.show(document, (out) => spendScreen(rollup, out, by));
}
