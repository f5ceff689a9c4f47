import type { Database } from '@millrace/engine';
import { firstGuardState, type GuardState } from '../core/guard.js';

const collection = 'guard';

/** Guard state per agent, on disk and cached in memory. */
export class GuardStore {
  readonly #database: Database;
  readonly #states: Map<string, GuardState>;

  private constructor(database: Database, states: Map<string, GuardState>) {
    this.#database = database;
    this.#states = states;
  }

  static async open(database: Database): Promise<GuardStore> {
    const states = new Map<string, GuardState>();
    for await (const { key, data } of database.collection<GuardState>(collection).stream()) {
      states.set(key, data);
    }
    return new GuardStore(database, states);
  }

  get agents(): string[] {
    return [...this.#states.keys()];
  }

  of(id: string): GuardState {
    return this.#states.get(id) ?? firstGuardState;
  }

  async put(id: string, state: GuardState): Promise<void> {
    if (state === this.of(id)) return;
    await this.#database.collection<GuardState>(collection).upsert(id, state);
    this.#states.set(id, state);
  }

  async forget(id: string): Promise<void> {
    if (!this.#states.has(id)) return;
    await this.#database.collection<GuardState>(collection).deleteByKey(id);
    this.#states.delete(id);
  }
}
