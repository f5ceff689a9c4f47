import type { TaskStatus } from '../src/core/task.js';
import type { InsertResult, NewTask } from '../src/storage/port/task-store.js';

interface Holder {
  id: string;
  /** Null: until the task ends. */
  until: number | null;
}

/** Checks that at most one live task of a queue holds a unique key. */
export class KeyWitness {
  readonly #holders = new Map<string, Holder>();
  readonly #keys = new Map<string, { place: string; until: number | null }>();
  #removedUntil = -Infinity;
  /** Submits that got the task of another id. */
  replays = 0;

  constructor(
    private readonly statusOf: (id: string) => TaskStatus | undefined,
    private readonly demand: (holds: boolean, message: string, about: string) => void,
    /** Resolves when the calls that are under way are recorded. */
    private readonly othersRecorded: () => Promise<unknown>,
  ) {}

  inserted(task: NewTask, result: InsertResult, now: number): void {
    const { id, queue, uniqueKey, uniqueUntil = null } = task;
    if (uniqueKey === undefined || uniqueKey === null) return;
    const place = `${queue} ${uniqueKey}`;
    const holder = this.#holders.get(place);
    if (result.kind === 'stored') {
      if (holder && holder.id !== id && this.#holds(holder, now)) {
        void this.#checkEnded(holder, id, now);
      }
      this.#holders.set(place, { id, until: uniqueUntil });
      this.#keys.set(id, { place, until: uniqueUntil });
    } else if (result.kind === 'existing' && result.task.id !== id) {
      const owner = this.#keys.get(result.task.id);
      this.demand(owner?.place === place, `a task without the key ${uniqueKey} was returned`, id);
      this.replays++;
    }
  }

  /**
   * A store may run a settlement before an insert that was called earlier, when it joins the batch
   * of another settlement. So a call that was made meanwhile may have ended the holder.
   */
  async #checkEnded(holder: Holder, id: string, now: number): Promise<void> {
    await this.othersRecorded();
    this.demand(!this.#holds(holder, now), `the key of ${holder.id} was given away`, id);
  }

  /** Keys whose time is over by `now` may be gone, also after the clock is set back. */
  removed(now: number): void {
    this.#removedUntil = Math.max(this.#removedUntil, now);
  }

  /** A redriven task takes its key back if nobody else has it. */
  redriven(id: string, now: number): void {
    const key = this.#keys.get(id);
    if (!key) return;
    const holder = this.#holders.get(key.place);
    // A key with a time is held until then, also after its task has ended.
    const isTimed = holder !== undefined && holder.until !== null && holder.until > now;
    if (isTimed && holder.until! <= this.#removedUntil) return void this.#holders.delete(key.place);
    if (holder && holder.id !== id && (isTimed || this.#holds(holder, now))) return;
    this.#holders.set(key.place, { id, until: key.until });
  }

  /** A task that has ended may have been deleted with its key, so only a live one counts. */
  #holds({ id, until }: Holder, now: number): boolean {
    const status = this.statusOf(id);
    if (status !== 'PENDING' && status !== 'IN_FLIGHT') return false;
    return until === null || until > Math.max(now, this.#removedUntil);
  }
}
