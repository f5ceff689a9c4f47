import type { Random } from '@millrace/kit/random';
import type { WholeTask } from '../../core/task.js';
import { mayStart, withStarts, type Starts } from '../../core/start-window.js';
import type { ClaimAsk } from '../task-store.js';
import { claimValues, type Picking } from './claim-values.js';
import {
  inOrder,
  lastFree,
  toClaimed,
  turnsAfter,
  type ClaimedRow,
  type FreePlace,
  type Turns,
} from './claimed-row.js';
import type { Connections, Transaction } from './connections.js';
import type { FloorClaim, Floors } from './floors.js';
import { QuickClaims } from './quick-claims.js';
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

const walkedAt = 13;
const walkedToAt = 14;
/** So many FIFO groups are looked at with one claim. */
const mostGroups = 2_000;

/** Takes due tasks, one claim of a queue at a time over all servers. */
export class Claims {
  /** Where the walk over a queue's FIFO groups goes on. */
  readonly #walks = new Map<string, string>();

  readonly #quick: QuickClaims;

  constructor(
    private readonly connections: Connections,
    private readonly floors: Floors,
    private readonly monotonic: () => number,
    random: Random,
  ) {
    this.#quick = new QuickClaims(connections, floors, monotonic, random);
  }

  async claim(ask: ClaimAsk): Promise<WholeTask[]> {
    if (ask.limit <= 0) return [];
    return (await this.#quick.claim(ask)) ?? this.#claim(ask);
  }

  #claim(ask: ClaimAsk): Promise<WholeTask[]> {
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
      const turns = JSON.parse(gate.turns) as Turns;
      const picking = { ask, queueNo: gate.no, limit, tokens, turns };
      return this.#pick(transaction, { ...picking, gate, starts });
    });
  }

  async #pick(transaction: Transaction, picking: GatePicking): Promise<WholeTask[]> {
    const { ask, gate, starts, turns } = picking;
    const floorClaim = this.floors.begin(ask.queue, gate.no, this.monotonic());
    let last: (FreePlace | undefined)[] = [];
    try {
      const rows = await this.#ask(transaction, picking, floorClaim);
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
      if (!next && !gate.has_groups && rows.length === ask.limit) {
        this.#quick.learn(ask.queue, gate, rows.length);
      }
      return rows.map((row) => toClaimed(row, picking));
    } finally {
      this.floors.end(ask.queue, floorClaim, last, this.monotonic());
    }
  }

  async #ask(
    transaction: Transaction,
    picking: GatePicking,
    floorClaim: FloorClaim,
  ): Promise<ClaimedRow[]> {
    const { ask, gate } = picking;
    const values = claimValues(picking, this.floors, floorClaim);
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

interface GatePicking extends Picking {
  gate: Gate;
  starts: Starts;
}

/** Without the row that is there when nothing was claimed. */
function walkedRows(rows: ClaimedRow[]): ClaimedRow[] {
  return (rows[0]![0] as string | null) === null ? [] : rows;
}
