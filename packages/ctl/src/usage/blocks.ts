import type { DaemonSchema } from '@millrace/contract/daemon';
import { humanCount } from '@millrace/kit/units';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Flags, Tools } from '../base/tools.js';
import { dollars, localTime, rightAligned } from '../render/figures.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { priceText } from './spend-screen.js';

type UsageBlock = DaemonSchema<'UsageBlock'>;
type UsageValue = DaemonSchema<'UsageValue'>;

export type BlocksFlags = DaemonFlags & Flags<'backend', 'active'>;

export async function showBlocks(flags: BlocksFlags, tools: Tools): Promise<void> {
  const { backend, active, ...where } = flags;
  const api = await daemonApi(where, tools);
  const found = await api.call('getUsageBlocks', { query: backend ? { backend } : {} });
  const blocks = active ? found.blocks.filter(({ is_active }) => is_active) : found.blocks;
  const document = { ...found, blocks };
  tools.terminal.show(document, (out) => blocksScreen(document, out));
}

/** A row for each block; the rate and the projection of the present one below. */
export function blocksScreen(
  { backend, blocks }: DaemonSchema<'UsageBlocks'>,
  sheet: Sheet,
): string {
  if (blocks.length === 0)
    return `There are no blocks of ${backend}: it has no transcripts here.\n`;
  const prices = rightAligned(blocks.map(({ exact_usd: usd }) => priceText(usd)));
  const table = renderTable(
    ['START', 'END', 'USD', 'TOKENS', 'TOKENS/MIN', 'USD/H', 'MODELS'],
    blocks.map((block, at): Cell[] => [
      localTime(block.start),
      block.is_active ? { text: 'now', tone: 'ok' } : localTime(block.end).slice(11),
      { text: prices[at]!, tone: 'strong' },
      humanCount(tokensOf(block)),
      block.burn ? humanCount(Math.round(block.burn.tokens_per_minute)) : '-',
      typeof block.burn?.usd_per_hour === 'number' ? dollars(block.burn.usd_per_hour) : '-',
      { text: block.models.join(', '), tone: 'dim' },
    ]),
    sheet,
  );
  const present = blocks.find(({ is_active }) => is_active);
  if (!present?.projection) return table;
  const { tokens, exact_usd: usd } = present.projection;
  const price = typeof usd === 'number' ? `, ${dollars(usd)}` : '';
  const text = `At this rate, the block that ends at ${localTime(present.end).slice(11)} has ${humanCount(tokens)} tokens${price}.`;
  return `${table}${text}\n`;
}

function tokensOf(block: UsageBlock): number {
  const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = block;
  return input_tokens + output_tokens + cache_read_tokens + cache_write_tokens;
}

export async function showValue(flags: DaemonFlags, tools: Tools): Promise<void> {
  const value = await (await daemonApi(flags, tools)).call('getUsageValue');
  const { format } = tools.terminal;
  const document =
    format === 'csv' || format === 'name' ? [...value.by_backend, value.total] : value;
  tools.terminal.show(document, (out) => valueScreen(value, out));
}

export function valueScreen({ by_backend: rows, total }: UsageValue, sheet: Sheet): string {
  if (rows.length === 0) return 'This daemon has not run any agents yet.\n';
  const titles = ['BACKEND', 'SESSIONS', 'FINISHED', 'MERGED', 'FIRST TRY', 'USD'];
  return renderTable(
    [...titles, 'USD/TASK', 'USD/MERGED'],
    (rows.length > 1 ? [...rows, total] : rows).map((row): Cell[] => [
      row.backend,
      String(row.sessions),
      String(row.finished_tasks),
      String(row.merged_branches),
      row.first_try_rate === null ? '-' : `${Math.round(row.first_try_rate * 100)}%`,
      { text: priceText(row.exact_usd), tone: 'strong' },
      row.usd_per_finished_task === null ? '-' : dollars(row.usd_per_finished_task),
      row.usd_per_merged_branch === null ? '-' : dollars(row.usd_per_merged_branch),
    ]),
    sheet,
  );
}
