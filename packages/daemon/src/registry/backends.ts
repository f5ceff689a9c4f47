import { nearest } from '@millrace/kit/nearest';
import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import type { CommitTarget, Database } from '@millrace/engine';
import {
  byId,
  isLocal,
  localId,
  rowOf,
  firstSettings,
  reconcile,
  withAcp,
  withCooldown,
  withDefault,
  withPreferences,
  type AcpRow,
  type Backend,
  type Detection,
  type RegistryState,
  type Settings,
  type ThinkingMode,
  type Preferences,
} from '../core/backend.js';
import { fail } from '../core/api.js';
import { SharedRuns } from '../core/turns.js';

export interface BackendsParts {
  registry: Registry;
  clock: Clock;
  /** Ids of the known agent CLIs. */
  knownIds: readonly string[];
  detect: () => Promise<Detection[]>;
  /** Finds out how a backend speaks the Agent Client Protocol; may run its program. */
  findAcp?: (backend: Backend) => Promise<AcpRow | undefined>;
}

/** The backends of this machine: detection, preferences and cooldowns. */
export class Backends {
  readonly #known: ReadonlySet<string>;
  readonly #scans: SharedRuns<RegistryState>;
  /** The visible part of the latest state. */
  #seen: { whole: RegistryState; visible: RegistryState } | undefined;
  #shown: Shown | undefined;

  constructor(private readonly parts: BackendsParts) {
    this.#known = new Set([...parts.knownIds, localId]);
    this.#scans = new SharedRuns(() => this.#scan());
  }

  /** Omits CLIs that the config no longer names; their preferences stay stored. */
  async read(): Promise<RegistryState> {
    return this.#visible(await this.parts.registry.read());
  }

  /** The backend of this id; refuses an unknown one with BACKEND_NOT_FOUND. */
  async find(id: string): Promise<Backend> {
    return this.#find(await this.parts.registry.read(), id);
  }

  async rescan(): Promise<RegistryState> {
    return this.#visible(await this.#scans.run());
  }

  async setDefault(id: string): Promise<RegistryState> {
    const { state } = await this.parts.registry.change((before) => {
      usable(this.#find(before, id), 'is never the default');
      return { state: withDefault(before, id), result: undefined };
    });
    return this.#visible(state);
  }

  async update(id: string, preferences: Preferences): Promise<Backend> {
    const { result } = await this.parts.registry.change((before) => {
      const backend = this.#find(before, id);
      if (isLocal(backend) && preferences.tier !== undefined) {
        const errors = [{ pointer: '/tier', message: 'cannot be changed for the backend local' }];
        throw fail('INVALID_REQUEST', 'The tier of the backend "local" cannot be changed.', {
          errors,
        });
      }
      if (isNothing(preferences)) return { state: before, result: backend };
      const state = withPreferences(before, id, preferences);
      return { state, result: this.#find(state, id) };
    });
    return result;
  }

  async setThinkingMode(mode: ThinkingMode): Promise<Settings> {
    const { state } = await this.parts.registry.change((before) => {
      const settings = { ...before.settings, internal_thinking_mode: mode };
      return { state: { ...before, settings }, result: undefined };
    });
    return state.settings;
  }

  /** Makes the router skip the backend until then. */
  async limit(id: string, until: number): Promise<void> {
    await this.parts.registry.change((before) => ({
      state: withCooldown(before, id, until),
      result: undefined,
    }));
  }

  /** The state of the API. The object is shared until it changes: do not modify it. */
  document(state: RegistryState): DaemonSchema<'Registry'> {
    const now = this.parts.clock.now();
    const shown = this.#shown;
    if (shown?.state === state && now >= shown.from && now < shown.until) return shown.document;
    const { backends, settings } = state;
    const document = {
      backends: backends.toSorted(byId).map((each) => rowOf(each, now)),
      settings,
    };
    this.#shown = { state, document, from: now, until: nextCooldownEnd(backends, now) };
    return document;
  }

  row(backend: Backend): DaemonSchema<'BackendRow'> {
    return rowOf(backend, this.parts.clock.now());
  }

  async #scan(): Promise<RegistryState> {
    const detections = await this.parts.detect();
    const { state } = await this.parts.registry.change((before, now) => ({
      state: reconcile(before, detections, now),
      result: undefined,
    }));
    return state;
  }

  /** Finds out which backends speak the Agent Client Protocol; may run their programs. */
  async findAcp(): Promise<RegistryState> {
    const { findAcp } = this.parts;
    const rows = new Map<string, AcpRow | null>();
    for (const backend of (await this.read()).backends) {
      rows.set(backend.id, (await findAcp?.(backend)) ?? null);
    }
    return this.#visible(await this.#noteAcp(rows));
  }

  /**
   * As `findAcp`, for installed backends without a row. One that fails is reported and does not
   * keep the others from being found.
   */
  async findMissingAcp(onError: (id: string, error: unknown) => void): Promise<void> {
    const { findAcp } = this.parts;
    const { backends } = await this.read();
    for (const backend of backends.filter(({ installed, acp }) => installed && !acp)) {
      try {
        const row = await findAcp?.(backend);
        if (row) await this.noteAcp(backend.id, row);
      } catch (error) {
        onError(backend.id, error);
      }
    }
  }

  /** Stores how a backend supports the Agent Client Protocol. */
  async noteAcp(id: string, row: AcpRow | undefined): Promise<void> {
    const backend = await this.find(id);
    if (JSON.stringify(row ?? null) === JSON.stringify(backend.acp ?? null)) return;
    await this.#noteAcp(new Map([[id, row ?? null]]));
  }

  async #noteAcp(rows: ReadonlyMap<string, AcpRow | null>): Promise<RegistryState> {
    const { state } = await this.parts.registry.change((before) => ({
      state: withAcp(before, rows),
      result: undefined,
    }));
    return state;
  }

  #visible(state: RegistryState): RegistryState {
    if (this.#seen?.whole === state) return this.#seen.visible;
    const visible = { ...state, backends: state.backends.filter(({ id }) => this.#known.has(id)) };
    this.#seen = { whole: state, visible };
    return visible;
  }

  #find(state: RegistryState, id: string): Backend {
    const { backends } = this.#visible(state);
    const found = backends.find((backend) => backend.id === id);
    if (found) return found;
    const meant = nearest(
      id,
      backends.map((backend) => backend.id),
    );
    const hint = meant === undefined ? 'GET /api/v1/backends lists them' : `did you mean ${meant}?`;
    throw fail('BACKEND_NOT_FOUND', `There is no backend "${id.slice(0, 64)}": ${hint}`);
  }
}

/** The requested backend, or the default one; refuses one that cannot be used. */
export async function backendFor(backends: Backends, id: string | undefined): Promise<Backend> {
  const backend = id === undefined ? await defaultBackend(backends) : await backends.find(id);
  return usable(backend);
}

/** Refuses a backend that cannot run agents. */
export function usable(
  backend: Backend,
  whyNotLocal = 'runs no agents: choose from `ctl backend list`',
): Backend {
  const { id } = backend;
  const refuse = (why: string) => fail('BACKEND_NOT_ELIGIBLE', `The backend "${id}" ${why}`);
  if (id === localId) throw refuse(`is the local model, which ${whyNotLocal}.`);
  if (!backend.installed) {
    throw refuse('is not installed: install it and run `ctl backend rescan`.');
  }
  if (!backend.enabled) throw refuse(`is disabled: run \`ctl backend enable ${id}\` first.`);
  return backend;
}

async function defaultBackend(backends: Backends): Promise<Backend> {
  const rows = (await backends.read()).backends;
  const found = rows.find((each) => each.default);
  if (found) return found;
  const usableRows = rows.filter((row) => row.installed && row.enabled && row.id !== localId);
  if (usableRows.length === 1) return usableRows[0]!;
  if (!rows.some(({ id, installed }) => installed && id !== localId)) {
    throw fail(
      'BACKEND_NOT_ELIGIBLE',
      'No coding agent is on this machine: install one, such as claude or codex, and run ' +
        '`ctl backend rescan`.',
    );
  }
  if (usableRows.length === 0) {
    const { id } = rows.find((row) => row.installed && row.id !== localId)!;
    throw fail(
      'BACKEND_NOT_ELIGIBLE',
      'Every installed backend is disabled: enable one, such as with ' +
        `\`ctl backend enable ${id}\`.`,
    );
  }
  throw fail(
    'BACKEND_NOT_ELIGIBLE',
    'There is no default backend: choose one with `ctl backend default <id>`, or name one for ' +
      'this agent (`--backend`, in a request `backend`).',
  );
}

/** A cached document with its source state and validity: an ending cooldown changes it. */
interface Shown {
  state: RegistryState;
  document: DaemonSchema<'Registry'>;
  from: number;
  until: number;
}

function nextCooldownEnd(backends: readonly Backend[], now: number): number {
  const ends = backends.map((backend) => backend.limited_until).filter((end) => end > now);
  return Math.min(...ends, Infinity);
}

function isNothing({ tier, enabled }: Preferences): boolean {
  return tier === undefined && enabled === undefined;
}

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
