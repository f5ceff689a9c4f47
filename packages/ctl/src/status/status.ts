import type { Tools } from '../base/tools.js';
import type { Overview } from './overview.js';
import { readOverview, type StatusFlags } from './read-overview.js';
import { statusScreen } from './status-screen.js';

export async function showStatus(flags: StatusFlags, tools: Tools): Promise<void> {
  const overview = await readOverview(flags, tools);
  const { format } = tools.terminal;
  const document = format === 'name' ? runningIn(overview) : overview;
  tools.terminal.show(document, (out) => statusScreen(overview, out));
  if (!overview.ok) tools.exitWith(1);
}

/** `-o name`: the servers that run, as `ctl logs` and `ctl restart` take them. */
function runningIn(overview: Overview): string[] {
  return (['db', 'queue', 'daemon'] as const).filter((name) => overview[name].up);
}
