import type { CommitTarget, Database } from '@millrace/engine';
import type { Log } from '@millrace/kit/log';
import { fail } from '../core/refusals.js';
import type { Entry, Handle } from '../core/session.js';
import type { Session, SessionChange } from './port.js';
import { Turns } from '../core/turns.js';

/** Idempotency key of a spawn request, and a hash of the request. */
export interface SpawnKey {
  hash: string;
  sessionId: string;
}

type Step = (entry: Entry) => Entry;

const keyLifeMs = 86_400_000;
const collections = { sessions: 'sessions', handles: 'session_handles', keys: 'spawn_keys' };

/**
 * All sessions, on disk and in memory. Only this process writes them, so memory is authoritative;
 * listeners are called when a change is on disk. Changes of one session are serialized.
 */
export class SessionStore {
  readonly #entries = new Map<string, Entry>();
  readonly #turns = new Turns();
  readonly #listeners = new Set<(change: SessionChange) => void>();

  private constructor(
    private readonly database: Database,
    private readonly log: Log,
  ) {}

  static async open(database: Database, log: Log): Promise<SessionStore> {
    const store = new SessionStore(database, log);
    await store.#load();
    return store;
  }

  /** Newest first. */
  all(): Entry[] {
    return [...this.#entries.values()].toSorted((a, b) => (a.session.id < b.session.id ? 1 : -1));
  }

  get(id: string): Entry | undefined {
    return this.#entries.get(id);
  }

  /** Called after each change is on disk, in order. */
  onChange(listener: (change: SessionChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async add(entry: Entry, key?: { name: string } & Omit<SpawnKey, 'sessionId'>): Promise<void> {
    const { session, handle } = entry;
    await this.database.transact((target) => {
      putSession(target, session);
      putHandle(target, session.id, handle);
      if (!key) return;
      const { name, hash } = key;
      target
        .collection<SpawnKey>(collections.keys)
        .put(name, { hash, sessionId: session.id }, { ttlMs: keyLifeMs });
    });
    this.#entries.set(session.id, entry);
    this.#notify({ before: undefined, after: session });
  }

  async spawnKey(name: string): Promise<SpawnKey | undefined> {
    return (await this.database.collection<SpawnKey>(collections.keys).findByKey(name))?.data;
  }

  /**
   * Changes a session; undefined when the id is unknown. A step that returns its argument writes
   * nothing.
   */
  change(id: string, step: Step): Promise<Entry | undefined> {
    return this.#turns.in(id, async () => {
      const before = this.#entries.get(id);
      if (!before) return undefined;
      const after = step(before);
      const isNewSession = after.session !== before.session;
      const isNewHandle = after.handle !== before.handle;
      if (!isNewSession && !isNewHandle) return before;
      await this.database.transact((target) => {
        if (isNewSession) putSession(target, after.session);
        if (isNewHandle) putHandle(target, id, after.handle);
      });
      const entry = { session: after.session, handle: after.handle };
      this.#entries.set(id, entry);
      if (isNewSession) this.#notify({ before: before.session, after: after.session });
      return entry;
    });
  }

  remove(id: string): Promise<void> {
    return this.#turns.in(id, async () => {
      const before = this.#entries.get(id);
      if (!before) return;
      await this.database.transact((target) => {
        target.collection(collections.sessions).delete(id);
        target.collection(collections.handles).delete(id);
      });
      this.#entries.delete(id);
      this.#notify({ before: before.session, after: undefined });
    });
  }

  #notify(change: SessionChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        // A failing listener must not stop the session.
        this.log.error({ err: error }, 'session listener failed');
      }
    }
  }

  async #load(): Promise<void> {
    const handles = new Map<string, Handle>();
    const { database } = this;
    for await (const { key, data } of database.collection<Handle>(collections.handles).stream()) {
      handles.set(key, data);
    }
    const sessions = database.collection<Session>(collections.sessions);
    for await (const { key, data } of sessions.stream()) {
      const handle = handles.get(key);
      if (handle) this.#entries.set(key, { session: data, handle });
    }
  }
}

function putSession(target: CommitTarget, session: Session): void {
  target.collection<Session>(collections.sessions).put(session.id, session);
}

function putHandle(target: CommitTarget, id: string, handle: Handle): void {
  target.collection<Handle>(collections.handles).put(id, handle);
}

/** The session; refuses an unknown id. */
export function entryOf(store: SessionStore, id: string): Entry {
  const entry = store.get(id);
  if (!entry) throw notFound(id);
  return entry;
}

export function notFound(id: string): Error {
  return fail(
    'SESSION_NOT_FOUND',
    `There is no session "${id.slice(0, 64)}": GET /api/v1/sessions lists them.`,
  );
}
