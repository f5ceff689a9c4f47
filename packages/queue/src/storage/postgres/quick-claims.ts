import type { WholeTask } from '../../core/task.js';
import type { ClaimAsk } from '../task-store.js';
import { claimValues, type Picking } from './claim-values.js';
import {
  inOrder,
  lastFree,
  toClaimed,
  turnsAfter,
  type ClaimedRow,
  type FixedPart,
  type Turns,
} from './claimed-row.js';
import type { ClaimsParts } from './claims.js';
import { isConflict } from './failures.js';
import { claimQuick, lockGate, readClaimed } from './statements/claim-quick.sql.js';

type FixedRow = [id: string, ...FixedPart];

/** The insides of arrays, one value for each task that was claimed. */
interface ClaimedLists {
  /** Null: none was claimed. */
  ids: string | null;
  positions: string;
  due_ats: string;
  priorities: string;
  /** Null: none has one. */
  expire_ats: string | null;
  pasts: string | null;
}

interface Known {
  no: number;
  /** As the gate has them. */
  turns: string;
}

/** For few the two more statements cannot pay; where they begin to was not measured. */
const fewest = 50;

/**
 * Claims from a queue that has more than enough to do and was seen to have no groups: the gate, the
 * claim, the commit and the question what was claimed are sent together. So nobody waits at the gate
 * for this server to read an answer, nor while the payloads are read. The claim itself makes sure that
 * the queue is still as it was seen; else nothing is claimed, and the long way is gone.
 */
export class QuickClaims {
  readonly #known = new Map<string, Known>();

  constructor(private readonly parts: ClaimsParts) {}

  /** A claim without groups or a rate took all it could, and left the turns as they were. */
  learn(queue: string, known: Known, count: number): void {
    if (count >= fewest) this.#known.set(queue, known);
  }

  forget(queue: string): void {
    this.#known.delete(queue);
  }

  /** Undefined: it does not go this way. */
  async claim(ask: ClaimAsk): Promise<WholeTask[] | undefined> {
    const known = this.#known.get(ask.queue);
    if (!known || ask.limit < fewest || ask.dispatchPerSecond > 0) return undefined;
    const tokens = Array.from({ length: ask.limit }, ask.newToken);
    const turns = JSON.parse(known.turns) as Turns;
    const picking: Picking = {
      ask,
      queueNo: known.no,
      limit: ask.limit,
      tokens,
      turns,
      above: this.parts.floors.above(ask.queue),
      firstEntry: this.parts.ledger.firstEntry(ask.queue),
    };
    const rows = await this.#take(picking, known);
    if (rows.length < ask.limit || turnsAfter(turns, rows)) this.forget(ask.queue);
    return rows.length === 0 ? undefined : rows.map((row) => toClaimed(row, picking));
  }

  async #take(picking: Picking, known: Known): Promise<ClaimedRow[]> {
    const { ask } = picking;
    const { connections, floors, random } = this.parts;
    const floorClaim = floors.begin(ask.queue, known.no);
    let last: (number | undefined)[] = [];
    try {
      const number = random.integer(1, Number.MAX_SAFE_INTEGER);
      const key = [ask.leaseExpiresAt, number];
      const scheduledFrom = floors.scheduledFrom(ask.queue);
      const values = [...claimValues(picking), known.turns, number, scheduledFrom];
      const { claimed, found } = await this.#send(known.no, values, key);
      if (claimed.ids === null) return [];
      const fixed = found ?? (await connections.ask<FixedRow>(readClaimed, key));
      const rows = inOrder(joined(claimed, claimed.ids.split(','), fixed));
      last = lastFree(rows);
      return rows;
    } finally {
      floors.end(ask.queue, floorClaim, last);
    }
  }

  async #send(
    queueNo: number,
    values: readonly unknown[],
    key: readonly unknown[],
  ): Promise<{ claimed: ClaimedLists; found: FixedRow[] | undefined }> {
    return this.parts.connections.transact(async (transaction) => {
      const locked = transaction.ask(lockGate, [queueNo]);
      const asked = transaction.askLast<ClaimedLists>(claimQuick, values);
      // By now the claim is committed: it must not be tried again.
      const read = transaction.ask<FixedRow>(readClaimed, key).catch((error: unknown) => {
        if (isConflict(error)) return undefined;
        throw error;
      });
      const [, [claimed], found] = await Promise.all([locked, asked, read]);
      return { claimed: claimed!, found };
    });
  }
}

/** One that is not found was taken away again before it was read: its lease had ended. */
function joined(
  claimed: ClaimedLists,
  ids: readonly string[],
  fixed: readonly FixedRow[],
): ClaimedRow[] {
  const places = new Map<string, number>();
  ids.forEach((id, place) => places.set(id, place));
  const positions = listOf<number>(claimed.positions);
  const dueAts = listOf<number>(claimed.due_ats);
  const priorities = listOf<number>(claimed.priorities);
  const expireAts = claimed.expire_ats === null ? [] : listOf<number | null>(claimed.expire_ats);
  const pasts = claimed.pasts === null ? [] : listOf<string | null>(claimed.pasts);
  return fixed.map((row) => {
    const [id, handlerRef, contentType, headers, createdAt, submittedBy, payload] = row;
    const place = places.get(id)!;
    return [
      id,
      positions[place]!,
      dueAts[place]!,
      priorities[place]!,
      expireAts[place] ?? null,
      pasts[place] ?? null,
      handlerRef,
      contentType,
      headers,
      createdAt,
      submittedBy,
      payload,
      null,
    ];
  });
}

function listOf<Value>(inside: string): Value[] {
  return JSON.parse(`[${inside}]`) as Value[];
}
