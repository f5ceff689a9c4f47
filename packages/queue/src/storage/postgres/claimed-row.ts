import type { LastError, WholeTask } from '../../core/task.js';
import type { ClaimAsk } from '../task-store.js';
import { attemptsOf } from './history.js';

/** What a claim has changed, and what it went by. */
export type ClaimedPart = [
  id: string,
  /** From 1: whose token it has. */
  position: number,
  wasDueAt: number,
  priority: number,
  expiresAt: number | null,
  /** Null: it was never claimed before. */
  past: string | null,
];

/** What never changes of a task, behind its id. */
export type FixedPart = [
  handlerRef: string,
  contentType: string,
  /** Null: none. */
  headers: string | null,
  createdAt: number,
  submittedBy: string,
  payload: Buffer,
];

/** A row of a claim. */
export type ClaimedRow = [
  ...ClaimedPart,
  ...FixedPart,
  groupKey: string | null,
  walked?: number,
  walkedTo?: string | null,
];

/** The same by name, as far as a claim goes by it. */
const at = { position: 1, wasDueAt: 2, priority: 3, groupKey: 12 } as const;

/** By priority, the group whose turn was last; '' for none. */
export type Turns = Record<number, string>;

/** Undefined: they stay as they are. */
export function turnsAfter(turns: Turns, rows: readonly ClaimedRow[]): Turns | undefined {
  let next: Turns | undefined;
  for (const row of rows) {
    const [priority, group] = [row[at.priority], row[at.groupKey] ?? ''];
    if ((next ?? turns)[priority] === group) continue;
    next ??= { ...turns };
    next[priority] = group;
  }
  return next;
}

/** By priority, when the last one without a group was due. */
export function lastFree(rows: readonly ClaimedRow[]): (number | undefined)[] {
  const last: (number | undefined)[] = [];
  for (const row of rows) {
    if (row[at.groupKey] === null) last[row[at.priority]] = row[at.wasDueAt];
  }
  return last;
}

/** In the order in which they were picked. */
export function inOrder(rows: ClaimedRow[]): ClaimedRow[] {
  return rows.sort((a, b) => a[at.position] - b[at.position]);
}

/** Attempt, of all, redrives, the last error, the history as text. */
type Past = [number, number, number, LastError | null, string];
const noPast: Past = [1, 1, 0, null, ''];

export function toClaimed(
  row: ClaimedRow,
  { ask, tokens }: { ask: ClaimAsk; tokens: readonly string[] },
): WholeTask {
  const [id, position, , priority, expiresAt, pastText, handlerRef, contentType] = row;
  const [headers, createdAt, submittedBy, payload] = [row[8], row[9], row[10], row[11]];
  const past = pastText === null ? noPast : (JSON.parse(`[${pastText}]`) as Past);
  return {
    id,
    queue: ask.queue,
    handlerRef,
    status: 'IN_FLIGHT',
    payloadContentType: contentType,
    headers: headers === null ? {} : (JSON.parse(headers) as Record<string, string>),
    priority,
    groupKey: row[at.groupKey],
    attempt: past[0],
    totalAttempts: past[1],
    redriveCount: past[2],
    createdAt,
    updatedAt: ask.now,
    dueAt: null,
    expiresAt,
    lease: {
      token: tokens[position - 1]!,
      expiresAt: ask.leaseExpiresAt,
      nodeId: ask.nodeId,
      startedAt: ask.now,
      isAsync: false,
    },
    completedAt: null,
    deadAt: null,
    deadReason: null,
    lastError: past[3],
    submittedBy,
    payload,
    attempts: attemptsOf(past[4]),
  };
}
