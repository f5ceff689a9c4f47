import type { WorkerNote, WorkerStats } from '../../port/task-store.js';
import { workerMemoryMs, workerStats } from '../../port/worker-table.js';
import type { Connections } from '../connection/connections.js';
import {
  forgetWorkers,
  listWorkers,
  noteKnownWorkers,
  noteNamedWorkers,
} from '../statements/workers.sql.js';

interface WorkerColumns {
  worker: string;
  principal: string;
  remote_ip: string | null;
  seen_at: number;
  claimed: number;
  completed: number;
  failed: number;
  returned: number;
}

/** Minimum interval between two deletions of old workers. */
const forgetIntervalMs = 60_000;

/** The workers of all servers on the database. */
export class Workers {
  #forgotAt = -Infinity;

  constructor(private readonly connections: Connections) {}

  async note(notes: readonly WorkerNote[], now: number): Promise<void> {
    const named = notes.filter(({ identity }) => identity !== undefined);
    const known = notes.filter(({ identity }) => identity === undefined);
    if (named.length > 0) await this.connections.query(noteNamedWorkers, [toJson(named)]);
    if (known.length > 0) await this.connections.query(noteKnownWorkers, [toJson(known)]);
    if (now - this.#forgotAt < forgetIntervalMs) return;
    this.#forgotAt = now;
    await this.connections.query(forgetWorkers, [now - workerMemoryMs]);
  }

  async list({ queue, seenSince }: { queue: string; seenSince: number }): Promise<WorkerStats[]> {
    const rows = await this.connections.query<WorkerColumns>(listWorkers, [queue, seenSince]);
    return rows.map(({ worker, principal, remote_ip: remoteIp, seen_at: seenAt, ...counts }) =>
      workerStats({ worker, principal, remoteIp }, { seenAt, ...counts }),
    );
  }
}

function toJson(notes: readonly WorkerNote[]): string {
  return JSON.stringify(
    notes.map(({ identity, seenAt, ...counts }) => ({
      ...counts,
      worker: identity?.worker,
      principal: identity?.principal,
      remote_ip: identity?.remoteIp,
      seen_at: seenAt,
    })),
  );
}
