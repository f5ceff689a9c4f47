import { isDeepStrictEqual } from 'node:util';
import type { Collection, Database } from '@millrace/db';
import type { Standing } from './look.js';

const mostStandings = 10_000;

/**
 * The standings on disk, by agent, and as they were last seen in memory. A standing is written
 * when it differs, not when it was merely seen again: whoever watches hears of changes alone.
 */
export class Standings {
  readonly #seen = new Map<string, Standing>();

  private constructor(private readonly records: Collection<Standing>) {}

  static async open(database: Database): Promise<Standings> {
    const standings = new Standings(database.collection<Standing>('branches'));
    const { records } = await standings.records.find({ limit: mostStandings });
    for (const { data } of records) standings.#seen.set(data.agent_id, data);
    return standings;
  }

  get(agentId: string): Standing | undefined {
    return this.#seen.get(agentId);
  }

  async put(standing: Standing): Promise<void> {
    const { agent_id: key } = standing;
    const before = this.#seen.get(key);
    const observed_at = standing.observed_at;
    if (!before || !isDeepStrictEqual({ ...before, observed_at }, standing)) {
      await this.records.upsert(key, standing);
    }
    this.#seen.set(key, standing);
  }

  /** Forgets those whose agent is gone. */
  async keepOnly(agents: ReadonlySet<string>): Promise<void> {
    for (const key of this.#seen.keys()) {
      if (agents.has(key)) continue;
      await this.records.deleteByKey(key);
      this.#seen.delete(key);
    }
  }
}
