import type { CommitTarget, Database } from '@millrace/engine';
import type { Log } from '@millrace/kit/log';
import { fail } from '../core/api.js';
import type { Entry, Handle } from '../core/session.js';
import type { Session, SessionChange } from './port.js';
import { step } from './session.js';
import type { Effect, SessionEvent, SessionState, Step } from '../core/session-events.js';
import { Turns } from '../core/turns.js';

/** Idempotency key of a spawn request, and a hash of the request. */
export interface SpawnKey {
  hash: string;
  sessionId: string;
}

/** The key of a session that is added. */
export type NewKey = { name: string } & Omit<SpawnKey, 'sessionId'>;

const keyLifeMs = 86_400_000;
const collections = { sessions: 'sessions', handles: 'session_handles', keys: 'spawn_keys' };

/**
 * All sessions, on disk and in memory. Only this process writes them, so memory is authoritative;
 * listeners are called when a change is on disk. Changes of one session are serialized.
 */
export class SessionStore {
  readonly #entries = new Map<string, SessionState>();
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

  get(id: string): SessionState | undefined {
    return this.#entries.get(id);
  }

  /** As `get`; refuses an unknown id. */
  need(id: string): SessionState {
    const entry = this.#entries.get(id);
    if (!entry) throw notFound(id);
    return entry;
  }

  /** The backend's own sessions of all agents but one. */
  ownSessionsBut(id: string): Set<string> {
    const others = [...this.#entries.values()].filter(({ session }) => session.id !== id);
    return new Set(others.map(({ session }) => session.backend_session_id ?? ''));
  }

  /** Called after each change is on disk, in order. */
  onChange(listener: (change: SessionChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async add(entry: Entry, key?: NewKey): Promise<void> {
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

  /** Applies events in order, and writes the result once; undefined when the id is unknown. */
  feed(id: string, events: readonly SessionEvent[]): Promise<Step | undefined> {
    return this.#turns.in(id, async () => {
      const before = this.#entries.get(id);
      if (!before) return undefined;
      let entry = before;
      const effects: Effect[] = [];
      for (const event of events) {
        const next = step(entry, event);
        entry = next.entry;
        effects.push(...next.effects);
      }
      const { session, handle } = entry;
      if (effects.some(({ type }) => type === 'record')) {
        await this.database.transact((target) => {
          if (session !== before.session) putSession(target, session);
          if (handle !== before.handle) putHandle(target, id, handle);
        });
      }
      this.#entries.set(id, entry);
      if (effects.some(({ type }) => type === 'notify')) {
        this.#notify({ before: before.session, after: session });
      }
      return { entry, effects };
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

export function notFound(id: string): Error {
  return fail(
    'SESSION_NOT_FOUND',
    `There is no session "${id.slice(0, 64)}": GET /api/v1/sessions lists them.`,
  );
}
