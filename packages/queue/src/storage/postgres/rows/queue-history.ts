import {
  noTotals,
  type HistoryPoint,
  type HistoryRow,
  type HistoryTotals,
} from '../../../core/history.js';
import type { HistoryQuery, HistoryWrite } from '../../port/task-store.js';
import type { Connections } from '../connection/connections.js';
import * as statements from '../statements/history.sql.js';

export async function writeHistory(
  connections: Connections,
  { rows, totals, prune }: HistoryWrite,
): Promise<void> {
  const queues = totals.map(({ queue }) => queue);
  await connections.transact(async (transaction) => {
    await transaction.query(statements.writeHistory, [
      rows.map(({ queue }) => queue),
      rows.map(({ stepS }) => stepS),
      rows.map(({ at }) => at),
      rows.map(({ instance }) => instance),
      rows.map(({ point }) => JSON.stringify(point)),
    ]);
    await transaction.query(statements.addHistoryTotals, [
      queues,
      totals.map(({ succeeded }) => succeeded),
      totals.map(({ failed }) => failed),
      totals.map(({ dead }) => dead),
    ]);
    for (const { stepS, before } of prune) {
      await transaction.query(statements.pruneHistory, [queues, stepS, before]);
    }
  });
}

export async function readHistory(
  connections: Connections,
  { queue, stepS, from }: HistoryQuery,
): Promise<HistoryRow[]> {
  const rows = await connections.query<{ at: number; instance: string; point: string }>(
    statements.readHistory,
    [queue, stepS, from],
  );
  return rows.map(({ at, instance, point }) => {
    return { queue, stepS, at, instance, point: JSON.parse(point) as HistoryPoint };
  });
}

export async function readHistoryTotals(
  connections: Connections,
  queue: string,
): Promise<HistoryTotals> {
  const [row] = await connections.query<HistoryTotals>(statements.readHistoryTotals, [queue]);
  return row ?? noTotals;
}
