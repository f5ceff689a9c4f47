import { isDeepStrictEqual } from 'node:util';
import type { Collection, Database } from '@millrace/engine';
import type { Standing } from './inspection.js';

const maxStandings = 10_000;

/**
 * The standings by agent, on disk and in memory. A standing is written only when it differs, so
 * that watchers get changes alone.
 */
export class Standings {
  readonly #latest = new Map<string, Standing>();

  private constructor(private readonly records: Collection<Standing>) {}

  static async open(database: Database): Promise<Standings> {
    const standings = new Standings(database.collection<Standing>('branches'));
    const { records } = await standings.records.find({ limit: maxStandings });
    for (const { data } of records) standings.#latest.set(data.agent_id, data);
    return standings;
  }

  get(agentId: string): Standing | undefined {
    return this.#latest.get(agentId);
  }

  async put(standing: Standing): Promise<void> {
    const { agent_id: key } = standing;
    const before = this.#latest.get(key);
    const observed_at = standing.observed_at;
    if (!before || !isDeepStrictEqual({ ...before, observed_at }, standing)) {
      await this.records.upsert(key, standing);
    }
    this.#latest.set(key, standing);
  }

  /** Deletes the standings of agents that no longer exist. */
  async deleteAllExcept(agents: ReadonlySet<string>): Promise<void> {
    for (const key of this.#latest.keys()) {
      if (agents.has(key)) continue;
      await this.records.deleteByKey(key);
      this.#latest.delete(key);
    }
  }
}
