import type { WholeTask } from '../../core/task.js';
import type { Connections } from './connections.js';
import { toWholeTask, type WholeColumns } from './rows.js';
import { endedLeases, sweepClaims } from './statements/ended-leases.sql.js';

/** Claims that are looked at together: a few where the first that is held is all that is asked for. */
const fewClaims = 16;
const manyClaims = 512;
const noEnd = Number.MAX_SAFE_INTEGER;

/** Tasks whose lease has run out by `now`, the longest past first. */
export async function readEndedLeases(
  connections: Connections,
  { now, limit }: { now: number; limit: number },
): Promise<WholeTask[]> {
  if ((await firstHeld(connections, now, manyClaims)) === undefined) return [];
  const found = await connections.ask<WholeColumns>(endedLeases, [now, limit, manyClaims]);
  return found.map(toWholeTask);
}

/** When the first lease ends. */
export function nextLeaseEnd(connections: Connections): Promise<number | undefined> {
  return firstHeld(connections, noEnd, fewClaims);
}

async function firstHeld(
  connections: Connections,
  by: number,
  most: number,
): Promise<number | undefined> {
  for (;;) {
    const [row] = await connections.ask<{ seen: number; held_until: number | null }>(sweepClaims, [
      by,
      most,
    ]);
    const { seen, held_until: heldUntil } = row!;
    if (heldUntil !== null) return heldUntil;
    if (seen < most) return undefined;
  }
}
