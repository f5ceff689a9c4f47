import type { LastError, WholeTask } from '../../core/task.js';
import { mayStart, withStarts, type Starts } from '../start-window.js';
import type { ClaimAsk } from '../task-store.js';
import { bigintArray, smallintArray, textArray } from './arrays.js';
import type { Connections, Transaction } from './connections.js';
import type { FloorClaim, Floors } from './floors.js';
import { attemptsOf } from './history.js';
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

/** A row of a claim. */
type ClaimedRow = [
  id: string,
  /** From 1: whose token it has. */
  position: number,
  wasDueAt: number,
  handlerRef: string,
  contentType: string,
  /** Null: none. */
  headers: string | null,
  priority: number,
  groupKey: string | null,
  createdAt: number,
  submittedBy: string,
  expiresAt: number | null,
  /** Null: it was never claimed before. */
  past: string | null,
  payload: Buffer,
  walked?: number,
  walkedTo?: string | null,
];

/** The same by name, as far as a claim goes by it. */
const at = { id: 0, position: 1, wasDueAt: 2, priority: 6, groupKey: 7 } as const;
const walkedAt = 13;
const walkedToAt = 14;

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
  ): Promise<ClaimedRow[]> {
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
        ? transaction.askLast<ClaimedRow>(claimPlain, values)
        : transaction.ask<ClaimedRow>(claimPlain, values);
      return inOrder(await rows);
    }
    if (!ask.fifoGroups) return inOrder(await transaction.ask(claimInTurn, values));
    values.push(this.#walks.get(ask.queue) ?? '', mostGroups);
    const rows = await transaction.ask<ClaimedRow>(claimFifo, values);
    const first = rows[0]!;
    if (first[walkedAt] === mostGroups) this.#walks.set(ask.queue, first[walkedToAt]!);
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
function turnsAfter(turns: Turns, rows: readonly ClaimedRow[]): Turns | undefined {
  let next: Turns | undefined;
  for (const row of rows) {
    const [priority, group] = [row[at.priority], row[at.groupKey] ?? ''];
    if ((next ?? turns)[priority] === group) continue;
    next ??= { ...turns };
    next[priority] = group;
  }
  return next;
}

function lastFree(rows: readonly ClaimedRow[]): ({ due: number; id: string } | undefined)[] {
  const last: (ClaimedRow | undefined)[] = [];
  for (const row of rows) if (row[at.groupKey] === null) last[row[at.priority]] = row;
  return last.map((row) => row && { due: row[at.wasDueAt], id: row[at.id] });
}

/** In the order in which they were picked. */
function inOrder(rows: ClaimedRow[]): ClaimedRow[] {
  return rows.sort((a, b) => a[at.position] - b[at.position]);
}

/** Without the row that is there when nothing was claimed. */
function walkedRows(rows: ClaimedRow[]): ClaimedRow[] {
  return (rows[0]![at.id] as string | null) === null ? [] : rows;
}

/** Attempt, of all, redrives, the last error, the history as text. */
type Past = [number, number, number, LastError | null, string];
const noPast: Past = [1, 1, 0, null, ''];

function toClaimed(row: ClaimedRow, { ask, tokens }: Picking): WholeTask {
  const [id, position, , handlerRef, contentType, headers, priority, groupKey, createdAt] = row;
  const [submittedBy, expiresAt, pastText, payload] = [row[9], row[10], row[11], row[12]];
  const past = pastText === null ? noPast : (JSON.parse(`[${pastText}]`) as Past);
  return {
    id,
    queue: ask.queue,
    handlerRef,
    status: 'IN_FLIGHT',
    payloadContentType: contentType,
    headers: headers === null ? {} : (JSON.parse(headers) as Record<string, string>),
    priority,
    groupKey,
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
