import type { CommitTarget, Database } from '@millrace/engine';
import {
  byId,
  firstSettings,
  type Backend,
  type RegistryState,
  type Settings,
} from '../core/backend.js';

/** One change of the registry: a pure function, because it may run twice. */
export type Step<Result> = (
  state: RegistryState,
  now: number,
) => { state: RegistryState; result: Result };

const collections = { backends: 'backends', settings: 'settings', marks: 'marks' };
const settingsKey = 'settings';
const maxBackends = 10_000;

/**
 * The backends and the settings on disk. Every change is one step of the engine's writer: it reads
 * the newest state and makes one commit. So there are never two defaults, and a rescan never
 * overwrites a preference that changed after it was read.
 */
export class Registry {
  /** Cache of the last state read. No other process writes, so it stays valid. */
  #known: RegistryState | undefined;
  #changes = 0;

  constructor(private readonly database: Database) {}

  /** The current registry. The object is shared: do not modify it. */
  async read(): Promise<RegistryState> {
    if (this.#known) return this.#known;
    const changes = this.#changes;
    const found = await this.#stored();
    // A concurrent change may or may not be included.
    if (changes === this.#changes) this.#known = found;
    return found;
  }

  async #stored(): Promise<RegistryState> {
    const { records } = await this.database
      .collection<Backend>(collections.backends)
      .find({ limit: maxBackends });
    const settings = await this.database
      .collection<Settings>(collections.settings)
      .findByKey(settingsKey);
    return {
      backends: records.map(({ data }) => data).toSorted(byId),
      settings: settings?.data ?? firstSettings,
    };
  }

  /** Runs the step on the newest state; its result is on disk when this resolves. */
  change<Result>(step: Step<Result>): Promise<{ state: RegistryState; result: Result }> {
    return this.#invalidating(
      this.database.transact((target) => {
        const before = stateIn(target);
        const { state, result } = step(before, target.now);
        write(target, before, state);
        return { state, result };
      }),
    );
  }

  async #invalidating<Result>(change: Promise<Result>): Promise<Result> {
    try {
      return await change;
    } finally {
      this.#changes++;
      this.#known = undefined;
    }
  }

  /**
   * As `change`, but only once for each data directory: sets the mark of this name in the same
   * commit, and returns undefined when it is set already.
   */
  changeOnce<Result>(
    mark: string,
    step: Step<Result>,
  ): Promise<{ state: RegistryState; result: Result } | undefined> {
    return this.#invalidating(
      this.database.transact((target) => {
        const marks = target.collection(collections.marks);
        if (marks.get(mark)) return undefined;
        const before = stateIn(target);
        const { state, result } = step(before, target.now);
        write(target, before, state);
        marks.put(mark, { at: target.now });
        return { state, result };
      }),
    );
  }
}

function stateIn(target: CommitTarget): RegistryState {
  const records = target.collection<Backend>(collections.backends).all();
  const settings = target.collection<Settings>(collections.settings).get(settingsKey);
  return {
    backends: records.map(({ data }) => data).toSorted(byId),
    settings: settings ?? firstSettings,
  };
}

/** Writes the objects that the step replaced; unchanged ones are the same object. */
function write(target: CommitTarget, before: RegistryState, after: RegistryState): void {
  const backends = target.collection<Backend>(collections.backends);
  const old = new Set(before.backends);
  for (const backend of after.backends) {
    if (!old.has(backend)) backends.put(backend.id, backend);
  }
  if (after.settings !== before.settings) {
    target.collection<Settings>(collections.settings).put(settingsKey, after.settings);
  }
}
