/** One process, as far as we count it. */
export interface ProcessRow {
  pid: number;
  parent: number;
  /** The process that leads its session: what an agent left behind still belongs to it. */
  session: number;
  /** CPU time of the process and, where the system tells, of its ended children. */
  cpuMs: number;
  rss: number;
}

/** What a process and all that it started use together. */
export interface TreeUse {
  cpuMs: number;
  rss: number;
}

/** All processes of this machine that we may see. */
export type ProcessReader = () => Promise<ProcessRow[]>;

/** What the tree below each of these processes uses; those that are gone are absent. */
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
  // A set goes on to what is added while it is walked.
  for (const { pid } of seen) for (const child of children.get(pid) ?? []) seen.add(child);
  const use = { cpuMs: 0, rss: 0 };
  for (const { cpuMs, rss } of seen) {
    use.cpuMs += cpuMs;
    use.rss += rss;
  }
  return use;
}
