/** A place in the order of ready tasks: due time, then id. */
interface Place {
  due: number;
  id: string;
}

interface QueueFloors {
  queueNo: number;
  /** By priority: up to here everything without a group was claimed. */
  places: (Place | undefined)[];
  /** When all was last looked through, by the steady clock. */
  lookedAt: number;
  /** How long to go by the floors. */
  keptMs: number;
  claims: Set<FloorClaim>;
}

/** What a claim under way must not overlook: tasks that became ready meanwhile. */
export interface FloorClaim {
  readonly isFull: boolean;
  readonly startedAt: number;
  readonly lowest: (Place | undefined)[];
}

const priorities = 10;
/** Tasks of other servers may be committed later than younger ones that were claimed. */
const slackMs = 250;
const shortestMs = 1_000;
/** Where a look takes so long, it goes over what cannot be cleaned up, and others wait for it. */
const longLookMs = 500;

/**
 * What was claimed is still in the index until the database cleans up, and that it cannot do while
 * somebody holds an old snapshot. Claims do not walk over it each time: they begin where the last
 * one ended, and look through all once a second. What this server makes ready below a floor lowers
 * it; what another one does is found a second later.
 */
export class Floors {
  readonly #queues = new Map<string, QueueFloors>();

  /** Begins a claim. */
  begin(queue: string, queueNo: number, now: number): FloorClaim {
    let floors = this.#queues.get(queue);
    if (floors?.queueNo !== queueNo) {
      floors = { queueNo, places: [], lookedAt: -Infinity, keptMs: shortestMs, claims: new Set() };
      this.#queues.set(queue, floors);
    }
    const isFull = now - floors.lookedAt >= floors.keptMs;
    const claim: FloorClaim = { isFull, startedAt: now, lowest: [] };
    floors.claims.add(claim);
    return claim;
  }

  /** Above which due time to look. */
  floor(queue: string, claim: FloorClaim, priority: number): number {
    const place = this.#queues.get(queue)?.places[priority];
    return claim.isFull || !place ? -1 : Math.max(-1, place.due - slackMs);
  }

  /** A task without a group became ready, or will at this time. */
  lower(queue: string, priority: number, due: number, id: string): void {
    const floors = this.#queues.get(queue);
    if (!floors) return;
    const place = { due, id };
    if (isAtOrBelow(place, floors.places[priority])) floors.places[priority] = undefined;
    for (const { lowest } of floors.claims) {
      if (!lowest[priority] || isAtOrBelow(place, lowest[priority])) lowest[priority] = place;
    }
  }

  /** The same for some of a queue that are not known one by one. */
  lowerAll(queue: string, due: number): void {
    for (let priority = 0; priority < priorities; priority++) this.lower(queue, priority, due, '');
  }

  /** Ends a claim: by priority, the last task without a group that was claimed. */
  end(queue: string, claim: FloorClaim, last: readonly (Place | undefined)[], now: number): void {
    const floors = this.#queues.get(queue);
    if (!floors?.claims.delete(claim)) return;
    if (claim.isFull) {
      const tookMs = now - claim.startedAt;
      floors.lookedAt = now;
      floors.keptMs = Math.max(shortestMs, tookMs * (tookMs < longLookMs ? 20 : 100));
    }
    last.forEach((place, priority) => {
      if (!place) return;
      const lowest = claim.lowest[priority];
      floors.places[priority] = lowest && isAtOrBelow(lowest, place) ? undefined : place;
    });
  }

  forget(queue: string): void {
    this.#queues.delete(queue);
  }
}

function isAtOrBelow(place: Place, floor: Place | undefined): boolean {
  if (!floor) return false;
  return place.due < floor.due || (place.due === floor.due && place.id <= floor.id);
}
