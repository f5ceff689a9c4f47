import type { LastError, WholeTask } from '../../core/task.js';
import { mayStart, withStarts, type Starts } from '../start-window.js';
import type { ClaimAsk } from '../task-store.js';
import { bigintArray, smallintArray, textArray } from './arrays.js';
import type { Connections, Transaction } from './connections.js';
import type { FloorClaim, Floors } from './floors.js';
import { attemptsOf } from './rows.js';
import { claimFifo } from './statements/claim-fifo.sql.js';
import { claimInTurn } from './statements/claim-in-turn.sql.js';
import { claimPlain } from './statements/claim-plain.sql.js';
import { openGate } from './statements/open-gate.sql.js';
import { writeGate } from './statements/write-gate.sql.js';

interface Gate {
  no: number;
  turns: string;
  starts: string;
  has_groups: boolean;
  earliest_made: number | null;
}

interface ClaimedColumns {
  id: string;
  /** From 1: whose token it has. */
  position: number;
  was_due_at: number;
  handler_ref: string;
  content_type: string;
  headers: string;
  priority: number;
  group_key: string | null;
  created_at: number;
  submitted_by: string;
  attempt: number;
  total_attempts: number;
  redrive_count: number;
  expires_at: number | null;
  last_error: string | null;
  attempts: string;
  payload: Buffer;
  walked?: number;
  walked_to?: string | null;
}

/** By priority, the group whose turn was last; '' for none. */
type Turns = Record<number, string>;

const priorities = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0];
const lanes = smallintArray(priorities);
const noIds = textArray(priorities.map(() => ''));
/** Above every group key: the turn of nobody yet. */
const noTurn = '\u{10FFFF}';
/** So many FIFO groups are looked at with one claim. */
const mostGroups = 2_000;

/** Takes due tasks, one claim of a queue at a time over all servers. */
export class Claims {
  /** Where the walk over a queue's FIFO groups goes on. */
  readonly #walks = new Map<string, string>();

  constructor(
    private readonly connections: Connections,
    private readonly floors: Floors,
    private readonly monotonic: () => number,
  ) {}

  async claim(ask: ClaimAsk): Promise<WholeTask[]> {
    if (ask.limit <= 0) return [];
    // The work may run again, and the tokens may be few.
    const tokens: string[] = [];
    return this.connections.transact(async (transaction) => {
      const [gate] = await transaction.ask<Gate>(openGate, [ask.queue, ask.now]);
      if (!gate) return [];
      if (gate.earliest_made !== null) this.floors.lowerAll(ask.queue, gate.earliest_made);
      const starts = JSON.parse(gate.starts) as Starts;
      const limit = Math.min(ask.limit, mayStart(starts, ask.now, ask.dispatchPerSecond));
      if (limit <= 0) return [];
      while (tokens.length < limit) tokens.push(ask.newToken());
      return this.#pick(transaction, { ask, gate, starts, limit, tokens });
    });
  }

  async #pick(transaction: Transaction, picking: Picking): Promise<WholeTask[]> {
    const { ask, gate, starts } = picking;
    const turns = JSON.parse(gate.turns) as Turns;
    const floorClaim = this.floors.begin(ask.queue, gate.no, this.monotonic());
    let last: ({ due: number; id: string } | undefined)[] = [];
    try {
      const rows = await this.#ask(transaction, picking, turns, floorClaim);
      const next = turnsAfter(turns, rows);
      const isLimited = ask.dispatchPerSecond > 0 && rows.length > 0;
      // A plain claim has noted the turns itself.
      if (isLimited || (next && gate.has_groups)) {
        const started = isLimited
          ? withStarts(starts, ask.now, rows.length, ask.dispatchPerSecond)
          : starts;
        await transaction.ask(writeGate, [
          gate.no,
          JSON.stringify(next ?? turns),
          JSON.stringify(started),
        ]);
      }
      last = lastFree(rows);
      return rows.map((row) => toClaimed(row, picking));
    } finally {
      this.floors.end(ask.queue, floorClaim, last, this.monotonic());
    }
  }

  async #ask(
    transaction: Transaction,
    { ask, gate, limit, tokens }: Picking,
    turns: Turns,
    floorClaim: FloorClaim,
  ): Promise<ClaimedColumns[]> {
    const floors = priorities.map((each) => this.floors.floor(ask.queue, floorClaim, each));
    const values = [
      gate.no,
      limit,
      ask.maxInFlight,
      ask.now,
      ask.leaseExpiresAt,
      ask.nodeId,
      textArray(tokens),
      lanes,
      textArray(priorities.map((each) => turns[each] ?? noTurn)),
      bigintArray(floors),
      noIds,
    ];
    if (!gate.has_groups) {
      this.#walks.delete(ask.queue);
      // Others wait at the gate: it is not held while the tasks are read here.
      const isLast = ask.dispatchPerSecond === 0;
      const rows = isLast
        ? transaction.askLast<ClaimedColumns>(claimPlain, values)
        : transaction.ask<ClaimedColumns>(claimPlain, values);
      return inOrder(await rows);
    }
    if (!ask.fifoGroups) return inOrder(await transaction.ask(claimInTurn, values));
    values.push(this.#walks.get(ask.queue) ?? '', mostGroups);
    const rows = await transaction.ask<ClaimedColumns>(claimFifo, values);
    const { walked, walked_to: walkedTo } = rows[0]!;
    if (walked === mostGroups) this.#walks.set(ask.queue, walkedTo!);
    else this.#walks.delete(ask.queue);
    return inOrder(walkedRows(rows));
  }
}

interface Picking {
  ask: ClaimAsk;
  gate: Gate;
  starts: Starts;
  limit: number;
  tokens: readonly string[];
}

/** Undefined: they stay as they are. */
function turnsAfter(turns: Turns, rows: readonly ClaimedColumns[]): Turns | undefined {
  let next: Turns | undefined;
  for (const { priority, group_key: groupKey } of rows) {
    if ((next ?? turns)[priority] === (groupKey ?? '')) continue;
    next ??= { ...turns };
    next[priority] = groupKey ?? '';
  }
  return next;
}

function lastFree(rows: readonly ClaimedColumns[]): ({ due: number; id: string } | undefined)[] {
  const last: ({ due: number; id: string } | undefined)[] = [];
  for (const { priority, group_key: groupKey, was_due_at: due, id } of rows) {
    if (groupKey === null) last[priority] = { due, id };
  }
  return last;
}

/** In the order in which they were picked. */
function inOrder(rows: ClaimedColumns[]): ClaimedColumns[] {
  return rows.sort((a, b) => a.position - b.position);
}

/** Without the row that is there when nothing was claimed. */
function walkedRows(rows: ClaimedColumns[]): ClaimedColumns[] {
  return (rows[0]!.id as string | null) === null ? [] : rows;
}

function toClaimed(row: ClaimedColumns, { ask, tokens }: Picking): WholeTask {
  return {
    id: row.id,
    queue: ask.queue,
    handlerRef: row.handler_ref,
    status: 'IN_FLIGHT',
    payloadContentType: row.content_type,
    headers: row.headers === '{}' ? {} : (JSON.parse(row.headers) as Record<string, string>),
    priority: row.priority,
    groupKey: row.group_key,
    attempt: row.attempt,
    totalAttempts: row.total_attempts,
    redriveCount: row.redrive_count,
    createdAt: row.created_at,
    updatedAt: ask.now,
    dueAt: null,
    expiresAt: row.expires_at,
    lease: {
      token: tokens[row.position - 1]!,
      expiresAt: ask.leaseExpiresAt,
      nodeId: ask.nodeId,
      startedAt: ask.now,
      isAsync: false,
    },
    completedAt: null,
    deadAt: null,
    deadReason: null,
    lastError: row.last_error === null ? null : (JSON.parse(row.last_error) as LastError),
    submittedBy: row.submitted_by,
    payload: row.payload,
    attempts: attemptsOf(row.attempts),
  };
}
