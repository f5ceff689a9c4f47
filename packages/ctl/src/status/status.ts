import type { Tools } from '../tools.js';
import { lookAround, type StatusFlags } from './looking.js';
import { statusScreen } from './status-screen.js';

export async function showStatus(flags: StatusFlags, tools: Tools): Promise<void> {
  const overview = await lookAround(flags, tools);
  const { out, json } = tools.terminal;
  out.write(json ? `${JSON.stringify(overview, null, 2)}\n` : statusScreen(overview, out));
  if (!overview.ok) tools.exitWith(1);
}
