import type { SettleResult, Settlement } from '../../port/task-store.js';
import { bigintArray, integerArray, smallintArray, textArray } from '../connection/arrays.js';
import { partsWithoutRepeats } from '../connection/batcher.js';
import type { ClaimedTasks } from './claimed-tasks.js';
import type { Queryable, Connections } from '../connection/connections.js';
import { attemptText } from './history.js';
import { toTask, verdicts, wholeMs, withoutZeros, type FoundColumns } from './task-columns.js';
import { findTasks } from '../statements/find-tasks.sql.js';
import { settle } from '../statements/settle.sql.js';

/** Settles claims in one commit; a result for each, in order. */
export async function settleAll(
  connections: Connections,
  claimed: ClaimedTasks,
  settlements: readonly Settlement[],
): Promise<SettleResult[]> {
  const parts = partsWithoutRepeats(settlements.map(withoutZerosIn), ({ id }) => id);
  if (parts.length === 1) return settlePart(connections, claimed, parts[0]!);
  return connections.transact(async (transaction) => {
    const results: SettleResult[] = [];
    for (const part of parts) results.push(...(await settlePart(transaction, claimed, part)));
    return results;
  });
}

/** Queues that may have work now, and those where only a slot of `max_in_flight` became free. */
export function settledQueues(results: readonly SettleResult[]) {
  const [all, work, freed] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const { kind, task } of results) {
    if (kind !== 'settled') continue;
    all.add(task.queue);
    // The end of a task without a group makes no other one due.
    (task.dueAt !== null || task.groupKey !== null ? work : freed).add(task.queue);
  }
  return { all, work, freed };
}

async function settlePart(
  db: Queryable,
  claimed: ClaimedTasks,
  settlements: readonly Settlement[],
): Promise<SettleResult[]> {
  const isSettled = await settleIds(db, settlements);
  const results: (SettleResult | undefined)[] = [];
  const unknown: Settlement[] = [];
  for (const settlement of settlements) {
    const task = isSettled(settlement.id) ? claimed.settled(settlement) : undefined;
    if (!task) unknown.push(settlement);
    results.push(task && { kind: 'settled', task });
  }
  if (unknown.length === 0) return results as SettleResult[];
  const found = await db.query<FoundColumns>(findTasks, [unknown.map(({ id }) => id)]);
  const rows = new Map(found.map((row) => [row.id, row]));
  return settlements.map(({ id, token }, i) => {
    const row = rows.get(id);
    if (results[i]) return results[i];
    const isShown = isSettled(id) && row && row.status !== null;
    return isShown ? { kind: 'settled', task: toTask(row) } : missedResult(row, token);
  });
}

function missedResult(row: FoundColumns | undefined, token: string): SettleResult {
  if (!row || row.status === null) return { kind: 'lease_lost', task: undefined };
  const task = toTask(row);
  if (row.settled_token !== token) return { kind: 'lease_lost', task };
  return { kind: 'repeated', task, verdict: verdicts[row.settled_verdict!]! };
}

/** Settles, and returns whether the settlement of an id took effect. */
export async function settleIds(
  db: Queryable,
  settlements: readonly Settlement[],
): Promise<(id: string) => boolean> {
  // All servers lock rows in the order of ids, so that there is no deadlock.
  const list = settlements.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const [row] = await db.query<SettledColumns>(settle, valuesOf(list));
  if (row!.count === list.length) return () => true;
  const settled = new Set(row!.settled?.split(','));
  return (id) => settled.has(id);
}

interface SettledColumns {
  count: number;
  settled: string | null;
}

function valuesOf(list: readonly Settlement[]): unknown[] {
  return [
    textArray(list.map(({ id }) => id)),
    textArray(list.map(({ token }) => token)),
    smallintArray(list.map(({ verdict }) => verdicts.indexOf(verdict.kind))),
    bigintArray(list.map(({ now }) => now)),
    bigintArray(list.map(({ verdict }) => ('dueAt' in verdict ? wholeMs(verdict.dueAt) : null))),
    textArray(list.map(({ verdict }) => ('reason' in verdict ? verdict.reason : null))),
    textArray(list.map(({ attempt }) => attemptText(attempt))),
    textArray(list.map(({ error }) => (error ? JSON.stringify(error) : null))),
    textArray(list.map(({ error }) => error?.errorType ?? null)),
    integerArray(list.map(({ error }) => error?.httpStatus ?? null)),
    textArray(list.map(resultText)),
    bigintArray(list.map(({ expiredBy }) => expiredBy ?? null)),
  ];
}

/** "" says that there was one, but too large. */
function resultText({ result, resultDropped }: Settlement): string | null {
  return resultDropped ? '' : (result ?? null);
}

function withoutZerosIn(settlement: Settlement): Settlement {
  const { token, error } = settlement;
  const isClean = !token.includes('\0') && !error?.message.includes('\0');
  if (isClean && !error?.errorType.includes('\0')) return settlement;
  const { message = '', errorType = '' } = error ?? {};
  return {
    ...settlement,
    token: withoutZeros(token),
    error: error && {
      ...error,
      message: withoutZeros(message),
      errorType: withoutZeros(errorType),
    },
  };
}
