/** From one due time to another, both included. */
export interface Range {
  from: number;
  to: number;
}

interface QueueFloors {
  queueNo: number;
  /** By priority: up to this due time everything without a group was claimed. */
  dues: (number | undefined)[];
  /** Before this due time nothing waits for its time. */
  scheduled: number;
  /** Much lies below the floors that is dead and still there. */
  isDeep: boolean;
  /** What is ready far below a floor that is deep. */
  strays: readonly Range[];
  claims: Set<FloorClaim>;
}

/** What a claim under way must not overlook: by priority, what became ready meanwhile. */
export interface FloorClaim {
  readonly lowered: (Range | undefined)[];
}

/** From high to low. */
export const priorities = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0] as const;
/** Tasks of other servers may be committed later than younger ones that were claimed. */
const slackMs = 250;
/** The same for tasks that wait for their time. */
const scheduledSlackMs = 5_000;
/** A walk over so much is short, also where all of it is dead. */
const shortWalkMs = 1_000;
const mostStrays = 16;

/**
 * What was claimed is still in the index until the database cleans up, and that it cannot do while
 * somebody holds an old snapshot. So claims do not walk over it: they begin where the last one ended.
 * What this server makes ready below a floor lowers it; what another one does is found by a look.
 *
 * Where it is deep below the floor, lowering it would make the next claim walk over all the dead.
 * There, what is ready far below is noted as a stray, and claimed by itself.
 */
export class Floors {
  readonly #queues = new Map<string, QueueFloors>();

  /** Begins a claim. */
  begin(queue: string, queueNo: number): FloorClaim {
    const claim: FloorClaim = { lowered: [] };
    this.#floorsOf(queue, queueNo).claims.add(claim);
    return claim;
  }

  /** Ends a claim: by priority, when the last task without a group was due that was claimed. */
  end(queue: string, claim: FloorClaim, last: readonly (number | undefined)[]): void {
    const floors = this.#queues.get(queue);
    if (!floors?.claims.delete(claim)) return;
    last.forEach((due, priority) => {
      if (due === undefined) return;
      floors.dues[priority] = due;
      const lowered = claim.lowered[priority];
      if (lowered) lower(floors, priority, lowered);
    });
  }

  /** Above which due time to look, of each priority. */
  above(queue: string): number[] {
    const dues = this.#queues.get(queue)?.dues ?? [];
    return priorities.map((priority) => Math.max(-1, (dues[priority] ?? -1) - slackMs));
  }

  /** A task without a group became ready that is due at this time, or will then. */
  lower(queue: string, priority: number, due: number): void {
    const floors = this.#queues.get(queue);
    if (!floors) return;
    const range = { from: due, to: due };
    lower(floors, priority, range);
    for (const { lowered } of floors.claims) lowered[priority] = joined(lowered[priority], range);
  }

  /** The same for some of a queue that are not known one by one. */
  lowerAll(queue: string, due: number): void {
    for (const priority of priorities) this.lower(queue, priority, due);
  }

  /** A task has to wait for this time. */
  awaits(queue: string, due: number): void {
    const floors = this.#queues.get(queue);
    if (floors) floors.scheduled = Math.min(floors.scheduled, due);
  }

  /** All that waited and was due by then is ready. */
  madeReady(queue: string, queueNo: number, now: number): void {
    this.#floorsOf(queue, queueNo).scheduled = Math.max(0, now - scheduledSlackMs);
  }

  /** Before which due time nothing waits for its time. */
  scheduledFrom(queue: string): number {
    return this.#queues.get(queue)?.scheduled ?? 0;
  }

  stray(queue: string): Range | undefined {
    return this.#queues.get(queue)?.strays[0];
  }

  /** Nothing is ready there any more. */
  noStray(queue: string, range: Range): void {
    const floors = this.#queues.get(queue);
    if (floors) floors.strays = floors.strays.filter((stray) => stray !== range);
  }

  setDeep(queue: string, isDeep: boolean): void {
    const floors = this.#queues.get(queue);
    if (floors) floors.isDeep = isDeep;
  }

  queueNo(queue: string): number | undefined {
    return this.#queues.get(queue)?.queueNo;
  }

  queues(): string[] {
    return [...this.#queues.keys()];
  }

  /** Takes over what another server found out, as `above` has it. */
  adopt(queue: string, queueNo: number, above: readonly number[]): void {
    const { dues } = this.#floorsOf(queue, queueNo);
    priorities.forEach((priority, i) => {
      if ((above[i] ?? -1) >= 0) dues[priority] ??= above[i];
    });
  }

  forget(queue: string): void {
    this.#queues.delete(queue);
  }

  #floorsOf(queue: string, queueNo: number): QueueFloors {
    let floors = this.#queues.get(queue);
    if (floors?.queueNo !== queueNo) {
      const claims = new Set<FloorClaim>();
      floors = { queueNo, dues: [], scheduled: 0, isDeep: false, strays: [], claims };
      this.#queues.set(queue, floors);
    }
    return floors;
  }
}

function lower(floors: QueueFloors, priority: number, { from, to }: Range): void {
  const floor = floors.dues[priority];
  if (floor === undefined || from >= floor) return;
  if (!floors.isDeep || floor - from <= shortWalkMs) {
    floors.dues[priority] = from;
    return;
  }
  const isKnown = floors.strays.some((stray) => stray.from <= from && to <= stray.to);
  // The next look finds what there was no room for.
  if (isKnown || floors.strays.length >= mostStrays) return;
  floors.strays = [...floors.strays, { from, to: Math.min(to, floor) }];
}

function joined(one: Range | undefined, other: Range): Range {
  if (!one) return other;
  return { from: Math.min(one.from, other.from), to: Math.max(one.to, other.to) };
}
