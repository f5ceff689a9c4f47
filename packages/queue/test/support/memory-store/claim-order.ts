import type { TaskRow } from '../../../src/storage/port/store-parts.js';

/** The group key whose turn was last, by priority. */
export type Turns = Map<number, string | null>;

/**
 * Sorts tasks in claim order: higher priority first, then group keys round-robin from the last
 * turn, within a group by due time and id. Tasks without a key are one more group.
 */
export function pickInTurn(candidates: readonly TaskRow[], turns: Turns, limit: number): TaskRow[] {
  const picked: TaskRow[] = [];
  const priorities = [...new Set(candidates.map((row) => row.priority))].toSorted((a, b) => b - a);
  for (const priority of priorities) {
    const groups = groupsOf(candidates.filter((row) => row.priority === priority));
    while (groups.size > 0 && picked.length < limit) {
      const key = nextKey([...groups.keys()], turns, priority);
      const rows = groups.get(key)!;
      picked.push(rows.shift()!);
      if (rows.length === 0) groups.delete(key);
      turns.set(priority, key);
    }
  }
  return picked;
}

/**
 * The heads of FIFO groups, and the tasks without a group. A started task comes before all others;
 * while a task is in flight, its group has no head.
 */
export function headsOfGroups(rows: readonly TaskRow[]): Set<TaskRow> {
  const heads = new Set<TaskRow>();
  const groups = new Map<string, TaskRow[]>();
  for (const row of rows) {
    if (row.groupKey === null) heads.add(row);
    else if (groups.has(row.groupKey)) groups.get(row.groupKey)!.push(row);
    else groups.set(row.groupKey, [row]);
  }
  for (const group of groups.values()) {
    if (group.some((row) => row.status === 'IN_FLIGHT')) continue;
    const waiting = group.filter((row) => row.status === 'PENDING');
    const started = waiting.filter((row) => row.started);
    const [head] = (started.length > 0 ? started : waiting).toSorted(byDue);
    if (head) heads.add(head);
  }
  return heads;
}

export function byDue(a: TaskRow, b: TaskRow): number {
  return a.dueAt! - b.dueAt! || compareText(a.id, b.id);
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function groupsOf(rows: readonly TaskRow[]): Map<string | null, TaskRow[]> {
  const groups = new Map<string | null, TaskRow[]>();
  for (const row of rows.toSorted(byDue)) {
    if (groups.has(row.groupKey)) groups.get(row.groupKey)!.push(row);
    else groups.set(row.groupKey, [row]);
  }
  return groups;
}

function nextKey(keys: (string | null)[], turns: Turns, priority: number): string | null {
  const inOrder = keys.toSorted(compareKeys);
  if (!turns.has(priority)) return inOrder[0]!;
  const last = turns.get(priority)!;
  const next = inOrder.find((key) => compareKeys(key, last) > 0);
  return next === undefined ? inOrder[0]! : next;
}

/** No key first, then by the bytes of UTF-8. */
function compareKeys(a: string | null, b: string | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
