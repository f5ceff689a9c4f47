import type { SettleResult, Settlement } from '../task-store.js';
import { bigintArray, integerArray, smallintArray, textArray } from './arrays.js';
import { partsWithoutRepeats } from './batcher.js';
import type { ClaimedTasks } from './claimed-tasks.js';
import type { Asking, Connections } from './connections.js';
import { toTask, verdicts, wholeMs, withoutZeros, type FoundColumns } from './rows.js';
import { findTasks } from './statements/find-tasks.sql.js';
import { settle, succeed } from './statements/settle.sql.js';

/** Ends claims in one commit; a result for each, in order. */
export async function settleAll(
  connections: Connections,
  claimed: ClaimedTasks,
  settlements: readonly Settlement[],
): Promise<SettleResult[]> {
  const cleaned = settlements.map(withoutZerosIn);
  const parts = partsWithoutRepeats(cleaned, ({ id }) => id);
  if (parts.length === 1) return settlePart(connections, claimed, cleaned);
  return connections.transact(async (transaction) => {
    const results: SettleResult[] = [];
    for (const part of parts) results.push(...(await settlePart(transaction, claimed, part)));
    return results;
  });
}

async function settlePart(
  asking: Asking,
  claimed: ClaimedTasks,
  settlements: readonly Settlement[],
): Promise<SettleResult[]> {
  const settled = await askFor(asking, settlements);
  const results = new Map<string, SettleResult>();
  const unknown: Settlement[] = [];
  for (const settlement of settlements) {
    const task = settled.has(settlement.id) ? claimed.settled(settlement) : undefined;
    if (task) results.set(settlement.id, { kind: 'settled', task });
    else unknown.push(settlement);
  }
  if (unknown.length > 0) {
    const found = await asking.ask<FoundColumns>(findTasks, [unknown.map(({ id }) => id)]);
    const rows = new Map(found.map((row) => [row.id, row]));
    for (const { id, token } of unknown) {
      const row = rows.get(id);
      const isSettled = settled.has(id) && row && row.status !== null;
      results.set(
        id,
        isSettled ? { kind: 'settled', task: toTask(row) } : missedResult(row, token),
      );
    }
  }
  return settlements.map(({ id }) => results.get(id)!);
}

function missedResult(row: FoundColumns | undefined, token: string): SettleResult {
  if (!row || row.status === null) return { kind: 'lease_lost', task: undefined };
  const task = toTask(row);
  if (row.settled_token !== token) return { kind: 'lease_lost', task };
  return { kind: 'repeated', task, verdict: verdicts[row.settled_verdict!]! };
}

/** The ids of those that took effect. */
async function askFor(asking: Asking, settlements: readonly Settlement[]): Promise<Set<string>> {
  // All take the rows in one order, so that nobody waits for another in a circle.
  const list = settlements.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const isPlain = ({ verdict, error }: Settlement) => verdict.kind === 'succeeded' && !error;
  const [row] = list.every(isPlain)
    ? await asking.ask<{ settled: string | null }>(succeed, [
        textArray(list.map(({ id }) => id)),
        textArray(list.map(({ token }) => token)),
        bigintArray(list.map(({ now }) => now)),
        textArray(list.map(({ attempt }) => JSON.stringify(attempt))),
      ])
    : await asking.ask<{ settled: string | null }>(settle, valuesOf(list));
  return new Set(row!.settled ? row!.settled.split(',') : []);
}

function valuesOf(list: readonly Settlement[]): unknown[] {
  return [
    textArray(list.map(({ id }) => id)),
    textArray(list.map(({ token }) => token)),
    smallintArray(list.map(({ verdict }) => verdicts.indexOf(verdict.kind))),
    bigintArray(list.map(({ now }) => now)),
    bigintArray(list.map(({ verdict }) => ('dueAt' in verdict ? wholeMs(verdict.dueAt) : null))),
    textArray(list.map(({ verdict }) => ('reason' in verdict ? verdict.reason : null))),
    textArray(list.map(({ attempt }) => JSON.stringify(attempt))),
    textArray(list.map(({ error }) => (error ? JSON.stringify(error) : null))),
    textArray(list.map(({ error }) => error?.errorType ?? null)),
    integerArray(list.map(({ error }) => error?.httpStatus ?? null)),
  ];
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
