import type { Tools } from '../tools.js';
import { readOverview, type StatusFlags } from './read-overview.js';
import { statusScreen } from './status-screen.js';

export async function showStatus(flags: StatusFlags, tools: Tools): Promise<void> {
  const overview = await readOverview(flags, tools);
  const { out, json } = tools.terminal;
  out.write(json ? `${JSON.stringify(overview, null, 2)}\n` : statusScreen(overview, out));
  if (!overview.ok) tools.exitWith(1);
}
