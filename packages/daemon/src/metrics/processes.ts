/** Resource usage of one process. */
export interface ProcessRow {
  pid: number;
  parent: number;
  /** Session leader: processes that an agent left behind still belong to it. */
  session: number;
  /** CPU time of the process and, where available, of its ended children. */
  cpuMs: number;
  rss: number;
}

/** Usage of a process tree. */
export interface TreeUse {
  cpuMs: number;
  rss: number;
}

/** Lists all visible processes. */
export type ProcessReader = () => Promise<ProcessRow[]>;

/** Usage of the tree below each of these processes; those that have ended are absent. */
export function treesOf(
  rows: readonly ProcessRow[],
  roots: readonly number[],
): Map<number, TreeUse> {
  const byPid = new Map(rows.map((row) => [row.pid, row]));
  const children = new Map<number, ProcessRow[]>();
  const add = (above: number, row: ProcessRow) => {
    const siblings = children.get(above);
    if (siblings) siblings.push(row);
    else children.set(above, [row]);
  };
  for (const row of rows) {
    add(row.parent, row);
    if (row.session !== row.parent && row.session !== row.pid) add(row.session, row);
  }
  return new Map(
    roots.flatMap((root) => {
      const top = byPid.get(root);
      return top ? [[root, useOf(top, children)] as const] : [];
    }),
  );
}

function useOf(top: ProcessRow, children: ReadonlyMap<number, readonly ProcessRow[]>): TreeUse {
  const seen = new Set([top]);
  // Iterating a Set includes items added during iteration.
  for (const { pid } of seen) for (const child of children.get(pid) ?? []) seen.add(child);
  const use = { cpuMs: 0, rss: 0 };
  for (const { cpuMs, rss } of seen) {
    use.cpuMs += cpuMs;
    use.rss += rss;
  }
  return use;
}
