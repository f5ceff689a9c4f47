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
  type Turns,
} from './claimed-row.js';
import type { Connections, Transaction } from './connections.js';
import type { Floors, Range } from './floors.js';
import type { Ledger } from './ledger.js';
import type { Looks } from './looks.js';
import { QuickClaims } from './quick-claims.js';
import { claimFifo } from './statements/claim-fifo.sql.js';
import { claimInTurn } from './statements/claim-in-turn.sql.js';
import { claimPlain } from './statements/claim-plain.sql.js';
import { mostMadeReady, openGate } from './statements/open-gate.sql.js';
import { writeGate } from './statements/write-gate.sql.js';

interface Gate {
  no: number;
  turns: string;
  starts: string;
  has_groups: boolean;
  made: number;
  earliest_made: number | null;
}

export interface ClaimsParts {
  connections: Connections;
  floors: Floors;
  looks: Looks;
  ledger: Ledger;
  random: Random;
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

  constructor(private readonly parts: ClaimsParts) {
    this.#quick = new QuickClaims(parts);
  }

  async claim(ask: ClaimAsk): Promise<WholeTask[]> {
    if (ask.limit <= 0) return [];
    const { floors, looks } = this.parts;
    await looks.look(ask.queue);
    const stray = floors.stray(ask.queue);
    if (stray) {
      const tasks = await this.#claim(ask, stray);
      if (tasks.length > 0) return tasks;
    }
    const tasks = (await this.#quick.claim(ask)) ?? (await this.#claim(ask));
    // There was room for it, so it is gone.
    if (stray && tasks.length > 0) floors.noStray(ask.queue, stray);
    return tasks;
  }

  async #claim(ask: ClaimAsk, stray?: Range): Promise<WholeTask[]> {
    const { connections, floors, ledger } = this.parts;
    // The work may run again, and the tokens may be few.
    const tokens: string[] = [];
    let gate: Gate | undefined;
    const tasks = await connections.transact(async (transaction) => {
      const scheduledFrom = floors.scheduledFrom(ask.queue);
      [gate] = await transaction.ask<Gate>(openGate, [ask.queue, ask.now, scheduledFrom]);
      if (!gate) return [];
      if (gate.earliest_made !== null) floors.lowerAll(ask.queue, gate.earliest_made);
      const starts = JSON.parse(gate.starts) as Starts;
      const limit = Math.min(ask.limit, mayStart(starts, ask.now, ask.dispatchPerSecond));
      if (limit <= 0) return [];
      while (tokens.length < limit) tokens.push(ask.newToken());
      const turns = JSON.parse(gate.turns) as Turns;
      const above = floors.above(ask.queue);
      const firstEntry = ledger.firstEntry(ask.queue);
      const picking = { ask, queueNo: gate.no, limit, tokens, turns, above, stray, firstEntry };
      return this.#pick(transaction, { ...picking, gate, starts });
    });
    if (gate && gate.made < mostMadeReady) floors.madeReady(ask.queue, gate.no, ask.now);
    return tasks;
  }

  async #pick(transaction: Transaction, picking: GatePicking): Promise<WholeTask[]> {
    const { ask, gate, starts, turns } = picking;
    const { floors } = this.parts;
    const floorClaim = floors.begin(ask.queue, gate.no);
    let last: (number | undefined)[] = [];
    try {
      const rows = await this.#ask(transaction, picking);
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
      if (!picking.stray) last = lastFree(rows);
      if (!next && !gate.has_groups && rows.length === ask.limit) {
        this.#quick.learn(ask.queue, gate, rows.length);
      }
      return rows.map((row) => toClaimed(row, picking));
    } finally {
      floors.end(ask.queue, floorClaim, last);
    }
  }

  async #ask(transaction: Transaction, picking: GatePicking): Promise<ClaimedRow[]> {
    const { ask, gate } = picking;
    const values = claimValues(picking);
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
  const [id] = rows[0] as [id: string | null, ...unknown[]];
  return id === null ? [] : rows;
}
