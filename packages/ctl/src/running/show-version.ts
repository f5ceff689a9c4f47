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
  const { out, json } = tools.terminal;
  if (json) {
    const node = process.versions.node;
    out.write(`${JSON.stringify({ version: own, node, servers: running }, null, 2)}\n`);
    return;
  }
  const rows = [
    [programName(), own],
    ['node', process.versions.node],
    ['database', textOf(db)],
    ['queue', textOf(queue)],
    ['daemon', textOf(daemon)],
  ];
  out.write(renderTable(['', ''], rows, out));
  const others = [db, queue, daemon].filter((part) => part.version !== null);
  if (others.some((part) => part.version !== own)) {
    out.write(asTyped('A running server has another version. Restart it with `ctl restart`.\n'));
  }
}

function versionOf({ up, version: known }: PartState): string | null {
  return up ? known : null;
}

function textOf({ up, version: known }: PartState): string {
  return up ? (known ?? 'running, version unknown') : 'not running';
}
