import { isDeepStrictEqual } from 'node:util';
import type { Collection, Database } from '@millrace/engine';
import type { BranchStatus } from './inspection.js';

const maxStatuses = 10_000;

/**
 * The branch statuses by agent, on disk and in memory. A status is written only when it differs, so
 * that watchers get only changes.
 */
export class BranchStatuses {
  readonly #latest = new Map<string, BranchStatus>();

  private constructor(private readonly records: Collection<BranchStatus>) {}

  static async open(database: Database): Promise<BranchStatuses> {
    const statuses = new BranchStatuses(database.collection<BranchStatus>('branches'));
    const { records } = await statuses.records.find({ limit: maxStatuses });
    for (const { data } of records) statuses.#latest.set(data.agent_id, data);
    return statuses;
  }

  get(agentId: string): BranchStatus | undefined {
    return this.#latest.get(agentId);
  }

  async put(status: BranchStatus): Promise<void> {
    const { agent_id: key } = status;
    const before = this.#latest.get(key);
    const observed_at = status.observed_at;
    if (!before || !isDeepStrictEqual({ ...before, observed_at }, status)) {
      await this.records.upsert(key, status);
    }
    this.#latest.set(key, status);
  }

  /** Deletes the statuses of agents that no longer exist. */
  async deleteAllExcept(agents: ReadonlySet<string>): Promise<void> {
    for (const key of this.#latest.keys()) {
      if (agents.has(key)) continue;
      await this.records.deleteByKey(key);
      this.#latest.delete(key);
    }
  }
}
