import type { ClaimAsk } from '../task-store.js';
import { bigintArray, smallintArray, textArray } from './arrays.js';
import type { Turns } from './claimed-row.js';
import { priorities, type Range } from './floors.js';

const lanes = smallintArray(priorities);
const noEnd = bigintArray(priorities.map(() => Number.MAX_SAFE_INTEGER));
/** Above every group key: the turn of nobody yet. */
const noTurn = '\u{10FFFF}';

export interface Picking {
  ask: ClaimAsk;
  queueNo: number;
  limit: number;
  tokens: readonly string[];
  turns: Turns;
  /** Above which due time to look for tasks without a group, of each priority. */
  above: readonly number[];
  /** Only those are looked for. */
  stray?: Range | undefined;
  /** The first entry of the ledger. */
  firstEntry: number;
}

/** $1 to $12 of a claim. */
export function claimValues(picking: Picking): unknown[] {
  const { ask, queueNo, limit, tokens, turns, above, stray, firstEntry } = picking;
  return [
    queueNo,
    limit,
    ask.maxInFlight,
    ask.now,
    ask.leaseExpiresAt,
    ask.nodeId,
    textArray(tokens),
    lanes,
    textArray(priorities.map((each) => turns[each] ?? noTurn)),
    bigintArray(stray ? priorities.map(() => stray.from - 1) : above),
    stray ? bigintArray(priorities.map(() => stray.to)) : noEnd,
    firstEntry,
  ];
}
