import type { ClaimAsk } from '../task-store.js';
import { bigintArray, smallintArray, textArray } from './arrays.js';
import type { Turns } from './claimed-row.js';
import type { FloorClaim, Floors } from './floors.js';

const priorities = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0];
const lanes = smallintArray(priorities);
const noIds = textArray(priorities.map(() => ''));
/** Above every group key: the turn of nobody yet. */
const noTurn = '\u{10FFFF}';

export interface Picking {
  ask: ClaimAsk;
  queueNo: number;
  limit: number;
  tokens: readonly string[];
  turns: Turns;
}

/** $1 to $11 of a claim. */
export function claimValues(picking: Picking, floors: Floors, floorClaim: FloorClaim): unknown[] {
  const { ask, queueNo, limit, tokens, turns } = picking;
  const floor = priorities.map((each) => floors.floor(ask.queue, floorClaim, each));
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
    bigintArray(floor),
    noIds,
  ];
}
