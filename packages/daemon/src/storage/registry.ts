import type { Database } from '@millrace/db';
import {
  byId,
  firstSettings,
  type Backend,
  type RegistryState,
  type Settings,
} from '../core/backend.js';

/** One step of the registry: a pure function, for it may run twice. */
export type Step<Result> = (
  state: RegistryState,
  now: number,
) => { state: RegistryState; result: Result };

const settingsKey = 'settings';

/**
 * The backends and the settings on disk. Every change is one step of the engine's writer: it sees
 * the newest state, and all it does is one commit. So two defaults, or a preference that a rescan
 * read before somebody changed it, cannot come about.
 */
export class Registry {
  readonly #backends: Kept;
  readonly #settings: Kept;
  readonly #marks: Kept;
  /** The newest state that was read or written. Nobody else writes here, so it stays right. */
  #known: RegistryState | undefined;
  #changes = 0;

  private constructor(
    private readonly database: Database,
    { backends, settings, marks }: Record<'backends' | 'settings' | 'marks', Kept>,
  ) {
    this.#backends = backends;
    this.#settings = settings;
    this.#marks = marks;
  }

  static async open(database: Database): Promise<Registry> {
    const { core } = database;
    return new Registry(database, {
      backends: await core.ensureCollection('backends'),
      settings: await core.ensureCollection('settings'),
      marks: await core.ensureCollection('marks'),
    });
  }

  /** The whole registry as it is now. It is shared: nobody may change it. */
  async read(): Promise<RegistryState> {
    if (this.#known) return this.#known;
    const changes = this.#changes;
    const found = await this.#stored();
    // A change that came meanwhile may or may not be in it.
    if (changes === this.#changes) this.#known = found;
    return found;
  }

  async #stored(): Promise<RegistryState> {
    const { records } = await this.database
      .collection<Backend>(this.#backends.name)
      .find({ limit: mostBackends });
    const settings = await this.database
      .collection<Settings>(this.#settings.name)
      .findByKey(settingsKey);
    return {
      backends: records.map(({ data }) => data).toSorted(byId),
      settings: settings?.data ?? firstSettings,
    };
  }

  /** Runs the step on the newest state; what it returns is on disk when this resolves. */
  change<Result>(step: Step<Result>): Promise<{ state: RegistryState; result: Result }> {
    return this.#forgetting(
      this.database.transact((target) => {
        const before = this.#stateIn(target);
        const { state, result } = step(before, target.now);
        this.#write(target, before, state);
        return { state, result };
      }),
    );
  }

  async #forgetting<Result>(change: Promise<Result>): Promise<Result> {
    try {
      return await change;
    } finally {
      this.#changes++;
      this.#known = undefined;
    }
  }

  /**
   * As `change`, once in the life of the data directory: `undefined` when the mark of this name
   * is there already, which is set together with what the step does.
   */
  changeOnce<Result>(
    mark: string,
    step: Step<Result>,
  ): Promise<{ state: RegistryState; result: Result } | undefined> {
    return this.#forgetting(
      this.database.transact((target) => {
        if (target.byKey(this.#marks, mark)) return undefined;
        const before = this.#stateIn(target);
        const { state, result } = step(before, target.now);
        this.#write(target, before, state);
        this.#put(target, this.#marks, mark, { at: target.now });
        return { state, result };
      }),
    );
  }

  #stateIn(target: Target): RegistryState {
    const rows = [...target.view.scan(this.#backends.id, {}, () => true)];
    const settings = target.byKey(this.#settings, settingsKey);
    return {
      backends: rows.map(({ data }) => data as unknown as Backend).toSorted(byId),
      settings: (settings?.data as Settings | undefined) ?? firstSettings,
    };
  }

  /** Writes what the step made anew; what it handed on as it was is left alone. */
  #write(target: Target, before: RegistryState, after: RegistryState): void {
    const old = new Set(before.backends);
    for (const backend of after.backends) {
      if (!old.has(backend)) this.#put(target, this.#backends, backend.id, { ...backend });
    }
    if (after.settings !== before.settings) {
      this.#put(target, this.#settings, settingsKey, { ...after.settings });
    }
  }

  #put(target: Target, kept: Kept, key: string, data: Document): void {
    const there = target.byKey(kept, key);
    const id = there?.id ?? target.newId();
    target.store(kept, id, there, target.encode(data), { key, expiresAt: 0 });
  }
}

const mostBackends = 10_000;

type Target = Parameters<Parameters<Database['transact']>[0]>[0];
type Kept = Awaited<ReturnType<Database['core']['ensureCollection']>>;
type Document = Parameters<Target['encode']>[0];
