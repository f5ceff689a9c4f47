import { asTyped, programName } from '../base/command-name.js';
import type { PartState } from '../status/overview.js';
import { readOverview, type StatusFlags } from '../status/read-overview.js';
import { renderTable } from '../render/table.js';
import type { Tools } from '../base/tools.js';
import { version } from '../base/version.js';

/** Versions of this command, of Node and of the running servers. */
export async function showVersion(flags: StatusFlags, tools: Tools): Promise<void> {
  const { db, queue, daemon } = await readOverview(flags, tools);
  const own = version();
  const running = { db: versionOf(db), queue: versionOf(queue), daemon: versionOf(daemon) };
  const { node } = process.versions;
  const rows = [
    [programName(), own],
    ['node', node],
    ['database', textOf(db)],
    ['queue', textOf(queue)],
    ['daemon', textOf(daemon)],
  ];
  const others = [db, queue, daemon].filter((part) => part.version !== null);
  const advice = others.some((part) => part.version !== own)
    ? asTyped('A running server has another version. Restart it with `ctl restart`.\n')
    : '';
  tools.terminal.show(
    { version: own, node, servers: running },
    (out) => renderTable(['', ''], rows, out) + advice,
  );
}

function versionOf({ up, version: known }: PartState): string | null {
  return up ? known : null;
}

function textOf({ up, version: known }: PartState): string {
  return up ? (known ?? 'running, version unknown') : 'not running';
}
