import type { WorkerIdentity, WorkerNote, WorkerStats } from './task-store.js';

/** How long a worker that is no longer seen is remembered: longer than any first lease. */
export const workerMemoryMs = 2 * 3_600_000;
/** The workers seen longest ago are forgotten above this. */
const maxWorkers = 20_000;

interface Entry extends Omit<WorkerNote, 'identity'> {
  identity: WorkerIdentity;
}

/** Workers of stores that only one process uses: they are forgotten when it ends. */
export class WorkerTable {
  /** In the order in which they were seen last. */
  readonly #entries = new Map<string, Entry>();

  note(notes: readonly WorkerNote[], now: number): void {
    for (const note of notes) {
      const id = `${note.queue} ${note.key}`;
      const before = this.#entries.get(id);
      const identity = note.identity ?? before?.identity;
      if (!identity) continue;
      this.#entries.delete(id);
      this.#entries.set(id, sum(before, { ...note, identity }));
    }
    for (const [id, { seenAt }] of this.#entries) {
      const isSurplus = this.#entries.size > maxWorkers;
      if (isSurplus || seenAt < now - workerMemoryMs) this.#entries.delete(id);
    }
  }

  /** The queue was deleted. */
  forget(queue: string): void {
    for (const [id, entry] of this.#entries) if (entry.queue === queue) this.#entries.delete(id);
  }

  list({ queue, seenSince }: { queue: string; seenSince: number }): WorkerStats[] {
    return [...this.#entries.values()]
      .filter((entry) => entry.queue === queue && entry.seenAt >= seenSince)
      .map((entry) => workerStats(entry.identity, entry))
      .toSorted((a, b) => b.lastSeenAt - a.lastSeenAt || (a.worker < b.worker ? -1 : 1));
  }
}

export function workerStats(
  identity: WorkerIdentity,
  { seenAt, claimed, completed, failed, returned }: Omit<WorkerNote, 'identity' | 'queue' | 'key'>,
): WorkerStats {
  // Claims of before a restart may end without having been counted.
  const inFlight = Math.max(0, claimed - completed - failed - returned);
  return { ...identity, lastSeenAt: seenAt, inFlight, claimed, completed, failed };
}

function sum(before: Entry | undefined, note: Entry): Entry {
  if (!before) return note;
  return {
    ...note,
    seenAt: Math.max(before.seenAt, note.seenAt),
    claimed: before.claimed + note.claimed,
    completed: before.completed + note.completed,
    failed: before.failed + note.failed,
    returned: before.returned + note.returned,
  };
}
