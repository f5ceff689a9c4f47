import { type EndStatus, type TaskFlow, waitKinds } from '../../core/flow.js';
import type { Task, Tombstone } from '../../core/task.js';
import { tasksEnded } from '../port/flow-graph.js';
import { type FlowChange, type FlowIo, runLater } from '../port/flow-program.js';
import {
  type FlowRow,
  type FlowRowKey,
  flowRowKinds,
  type FlowRowQuery,
} from '../port/flow-store.js';
import type { Settlement, SettleResult } from '../port/task-store.js';
import { bigintArray, smallintArray, textArray } from './batches.js';
import type { Connections, Queryable, Transaction } from './connections.js';
import type { Counters } from './counters.js';
import * as sql from './flow.sql.js';
import { holdKeysAgain, insertInTransaction, type RedrivenColumns } from './inserts.js';
import { missedResult, settleIds } from './settlements.js';
import { redriveTasks } from './retention.js';
import { byId, statement, type Statement } from './statement.js';
import { findTasks, type FoundColumns, statusName, type TaskColumns, toTask } from './tasks.js';
import { toTombstone, wholeMs, withoutZeros } from './tasks.js';
import { pendingEnded } from './upkeep.js';

export interface FlowIoOptions {
  transaction: Transaction;
  counters: Counters;
  now: number;
  /** Collects what listeners are notified of after the commit. */
  effects?: FlowEffects | undefined;
}

/** Queues that have work, tasks that died, and when new tasks expire. */
export class FlowEffects {
  readonly queues = new Set<string>();
  readonly dead = new Set<string>();
  readonly expiries: number[] = [];
}

/** Answers the requests of a flow program within a transaction. */
export function flowIo({ transaction: db, counters, now, effects }: FlowIoOptions): FlowIo {
  return {
    lock: async ({ key }) => void (await db.query(sql.lockKey, [key])),
    tasks: ({ ids }) => lockTasks(db, ids),
    insert: async ({ tasks }) => {
      const inserts = tasks.map((task) => ({ task, now }));
      const results = await insertInTransaction(db, counters, inserts);
      const stored = tasks.filter((_, i) => results[i]!.kind === 'stored');
      const flows = new Map(stored.flatMap(({ id, flow }) => (flow ? [[id, flow]] : [])));
      setFlows(
        db,
        [...flows].map(([id, flow]) => ({ id, flow })),
      );
      for (const { queue } of tasks) effects?.queues.add(queue);
      effects?.expiries.push(...stored.flatMap(({ expiresAt }) => expiresAt ?? []));
      // A repeated id or unique key was read before the flow of its first task was stored.
      return results.map((result) => {
        const flow = result.kind === 'existing' && flows.get(result.task.id);
        return flow ? { ...result, task: { ...result.task, flow } } : result;
      });
    },
    settle: ({ settlement }) => settleOne(db, settlement),
    change: ({ changes }) => changeTasks(db, changes, now, effects),
    rows: (query) => readRows(db, query),
    // Nothing waits for what is written.
    write: ({ puts, removals }) => writeRows(db, puts, removals),
  };
}

/** Live tasks stay locked, so that their ends come after the commit. */
async function lockTasks(
  db: Queryable,
  ids: readonly string[],
): Promise<Map<string, Task | Tombstone>> {
  const found = new Map<string, Task | Tombstone>();
  if (ids.length === 0) return found;
  const live = await db.query<TaskColumns>(sql.lockFlowTasks, [ids]);
  for (const row of live) found.set(row.id, toTask(row));
  const others = ids.filter((id) => !found.has(id));
  if (others.length === 0) return found;
  for (const row of await db.query<FoundColumns>(findTasks, [others])) {
    found.set(row.id, row.status === null ? toTombstone(row) : toTask(row));
  }
  return found;
}

async function settleOne(db: Transaction, settlement: Settlement): Promise<SettleResult> {
  const { id, token, verdict } = settlement;
  const settling = settleIds(db, [settlement]);
  // A program that says what the task waits for has locked it and seen its lease.
  if (verdict.kind === 'suspended' && verdict.flow.waits)
    setFlows(db, [{ id, flow: verdict.flow }]);
  const finding = db.query<FoundColumns>(findTasks, [[id]]);
  const [{ isSettled }, [row]] = await Promise.all([settling, finding]);
  return isSettled(id) ? { kind: 'settled', task: toTask(row!) } : missedResult(row, token);
}

async function changeTasks(
  db: Transaction,
  changes: readonly FlowChange[],
  now: number,
  effects: FlowEffects | undefined,
): Promise<void> {
  const back = changes.filter(({ redriveAt }) => redriveAt !== undefined);
  if (back.length > 0) {
    const ids = back.map(({ id }) => id);
    const dueAt = back.map(({ redriveAt }) => wholeMs(redriveAt!));
    const rows = await db.query<RedrivenColumns>(redriveTasks, [null, ids, dueAt, now, now]);
    await holdKeysAgain(db, rows, now);
    for (const { queue } of rows) effects?.queues.add(queue);
  }
  const dead = changes.filter((change) => change.dead);
  if (dead.length > 0) {
    setFlows(db, dead);
    const errors = dead.map((change) => JSON.stringify(change.dead));
    db.queryLater(killBlocked, [dead.map(({ id }) => id), errors, now]);
    for (const { id } of dead) effects?.dead.add(id);
  }
  const moved = changes.filter(({ dueAt }) => dueAt !== undefined);
  if (moved.length > 0) {
    const dueAt = bigintArray(moved.map((change) => wholeMs(change.dueAt!)));
    const values = [...flowValues(moved), dueAt, now];
    db.queryLater(sql.moveFlows, values, (rows) => {
      for (const { name } of rows as { name: string }[]) effects?.queues.add(name);
    });
  }
  setFlows(
    db,
    changes.filter((change) => change.dueAt === undefined && !change.dead),
  );
}

function setFlows(db: Transaction, changes: readonly Pick<FlowChange, 'id' | 'flow'>[]): void {
  if (changes.length > 0) db.queryLater(sql.setFlows, flowValues(changes));
}

function flowValues(changes: readonly { id: string; flow: TaskFlow }[]): unknown[] {
  return [
    textArray(changes.map(({ id }) => id)),
    textArray(changes.map(({ flow }) => JSON.stringify(flow))),
    smallintArray(
      changes.map(({ flow }) => (flow.wait ? waitKinds.indexOf(flow.wait.kind) + 1 : null)),
    ),
  ];
}

export async function readRows(db: Queryable, query: FlowRowQuery): Promise<FlowRow[]> {
  const kinds = query.kinds.map((kind) => flowRowKinds.indexOf(kind) + 1);
  const values = [kinds, query.ids, query.keys?.map(withoutZeros) ?? null];
  type Columns = Omit<FlowRow, 'kind'> & { kind: number };
  const rows = await db.query<Columns>(sql.readFlowRows, values);
  return rows.map((row) => ({ ...row, kind: flowRowKinds[row.kind - 1]! }));
}

function writeRows(
  db: Transaction,
  puts: readonly FlowRow[],
  removals: readonly FlowRowKey[],
): void {
  if (removals.length > 0) db.queryLater(sql.removeFlowRows, keyValues(removals));
  if (puts.length === 0) return;
  // The last of several with one key wins.
  const last = new Map(puts.map((row) => [`${row.id} ${row.kind} ${row.key}`, row]));
  const rows = [...last.values()];
  const values = textArray(rows.map(({ value }) => value));
  db.queryLater(sql.putFlowRows, [...keyValues(rows), values]);
}

function keyValues(rows: readonly FlowRowKey[]): unknown[] {
  return [
    textArray(rows.map(({ id }) => id)),
    smallintArray(rows.map(({ kind }) => flowRowKinds.indexOf(kind) + 1)),
    textArray(rows.map(({ key }) => withoutZeros(key))),
  ];
}

const maxEnds = 500;

/**
 * Notifies waiting tasks of ends that were committed before, until none is left: those of this
 * call, and those whose server was killed. Returns how many.
 */
export async function notifyWaiters(
  connections: Connections,
  options: Omit<FlowIoOptions, 'transaction'> & { takeEnds: Statement },
): Promise<number> {
  let count = 0;
  for (;;) {
    const deadBefore = options.effects?.dead.size;
    const noted = await connections.transact(async (transaction) => {
      const taken = await transaction.query<{ id: string; outcome: number; runs_again: boolean }>(
        options.takeEnds,
        [maxEnds],
      );
      const ended = taken.filter(({ runs_again: runsAgain }) => !runsAgain);
      const status = (outcome: number) => statusName(outcome) as EndStatus;
      const ends = new Map(ended.map(({ id, outcome }) => [id, status(outcome)]));
      const io = flowIo({ ...options, transaction });
      if (ends.size > 0) await runLater(tasksEnded(ends, options.now), io);
      return taken.length;
    });
    count += noted;
    // Tasks that die are ends of their own.
    if (noted < maxEnds && options.effects?.dead.size === deadBefore) return count;
  }
}

/** Blocked tasks die. $1 ids, $2 errors, $3 now. */
const killBlocked = statement(
  'kill_blocked',
  `WITH input AS (
    SELECT * FROM unnest($1::text[], $2::text[]) AS i(id, error)
  ), gone AS (
    DELETE FROM millrace.live l USING input i
    WHERE ${byId('l.id', 'i.id')} AND l.lease_token IS NULL RETURNING l.*, i.error
  ), ${pendingEnded('DEPENDENCY_FAILED', {
    now: '$3',
    error: 'g.error',
    eventError: 'r.error',
  })}
  SELECT id FROM over`,
);
