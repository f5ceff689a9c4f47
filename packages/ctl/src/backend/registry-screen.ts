import type { DaemonSchema } from '@millrace/contract/daemon';
import { asTyped } from '../base/command-name.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { printable } from '../render/text.js';

type Registry = DaemonSchema<'Registry'>;

const columns = ['ID', 'INSTALLED', 'TIER', 'DEFAULT', 'ENABLED', 'LIMITED'].map((title) => ({
  title,
}));

/** Table of backends, then the thinking mode. */
export function registryScreen({ backends, settings }: Registry, sheet: Sheet): string {
  const rows = backends.map((row): Cell[] => [
    row.id,
    answer(row.installed),
    row.tier === 'unclassified' ? { text: row.tier, tone: 'dim' } : row.tier,
    row.default ? { text: 'yes', tone: 'strong' } : { text: 'no', tone: 'dim' },
    row.enabled ? 'yes' : { text: 'no', tone: 'warn' },
    row.limited_until === null
      ? { text: 'no', tone: 'dim' }
      : { text: `until ${minuteOf(row.limited_until)}`, tone: 'warn' },
  ]);
  const mode = sheet.paint('strong', printable(settings.internal_thinking_mode));
  const advice = backends.some(({ installed }) => installed)
    ? ''
    : asTyped(
        'No backend is installed on this machine. Install one, then run `ctl backend rescan`.\n',
      );
  return `${renderTable(columns, rows, sheet)}Thinking mode: ${mode}\n${acpLine(backends)}${advice}`;
}

/** Backends that speak the Agent Client Protocol, and through what. */
function acpLine(backends: Registry['backends']): string {
  const speaking = backends.flatMap(({ id, acp }) => (acp ? [`${id} (${acp.via})`] : []));
  return speaking.length === 0 ? '' : `Driver acp: ${printable(speaking.join(', '))}\n`;
}

function answer(yes: boolean): Cell {
  return yes ? { text: 'yes', tone: 'ok' } : { text: 'no', tone: 'dim' };
}

/** `2026-01-15 09:45Z` */
function minuteOf(timestamp: string): string {
  return `${timestamp.slice(0, 16).replace('T', ' ')}Z`;
}
