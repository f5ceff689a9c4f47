import * as daemonLists from '@millrace/contract/lists/daemon';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemClock } from '@millrace/kit/clock';
import { asTyped } from '../base/command-name.js';
import type { Tools } from '../base/tools.js';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import { listText } from '../base/list-text.js';
import type { Sheet } from '../render/table.js';
import { printable } from '../render/text.js';

type Registry = DaemonSchema<'Registry'>;

export async function listBackends(flags: DaemonFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  show(await api.call('listBackends'), tools);
}

export async function rescanBackends(
  { acp, ...flags }: DaemonFlags & { acp?: boolean },
  tools: Tools,
): Promise<void> {
  const api = await daemonApi(flags, tools);
  const registry = await api.call('rescanBackends', acp ? { query: { acp: true } } : {});
  show(registry, tools);
  if (tools.terminal.json) return;
  const { backends } = registry;
  const found = backends.filter(({ installed }) => installed).length;
  tools.terminal.out.write(`${found} of ${backends.length} are installed.\n`);
}

function show(registry: Registry, { terminal }: Tools): void {
  terminal.show(registry, (out) => registryScreen(registry, out));
}

/** Table of backends, then the thinking mode. */
export function registryScreen({ backends, settings }: Registry, sheet: Sheet): string {
  const mode = sheet.paint('strong', printable(settings.internal_thinking_mode));
  const advice = backends.some(({ installed }) => installed)
    ? ''
    : asTyped(
        'No backend is installed on this machine. Install one, then run `ctl backend rescan`.\n',
      );
  const table = listText(daemonLists.backends, backends, systemClock.now(), sheet);
  return `${table}Thinking mode: ${mode}\n${acpLine(backends)}${advice}`;
}

/** Backends that speak the Agent Client Protocol, and through what. */
function acpLine(backends: Registry['backends']): string {
  const speaking = backends.flatMap(({ id, acp }) => (acp ? [`${id} (${acp.via})`] : []));
  return speaking.length === 0 ? '' : `Driver acp: ${printable(speaking.join(', '))}\n`;
}
