import type { Database } from '@millrace/db';
import type { InboxNote, Once } from './alert.js';

/** An alert on its way to the webhook. */
export interface OutboxEntry {
  /** The note's id, and the `webhook-id` of every try. */
  id: string;
  /** The JSON to send: the same bytes every time. */
  body: string;
  raisedAt: number;
  tries: number;
  nextAt: number;
}

export interface AddOptions {
  once: Once | undefined;
  /** To be sent to the webhook as well. */
  outbox: OutboxEntry | undefined;
}

export const mostNotes = 1000;
export const mostInOutbox = 1000;

/** What was raised last for one agent, by topic. */
type Marks = Record<string, string>;

/**
 * Notes, the outbox, and what was already told of, on disk. An alert is one commit: there is never
 * a note without its place in the outbox, nor a note twice.
 */
export class AlertStore {
  readonly #database: Database;
  readonly #notes: Kept;
  readonly #outbox: Kept;
  readonly #marks: Kept;

  private constructor(database: Database, notes: Kept, outbox: Kept, marks: Kept) {
    this.#database = database;
    this.#notes = notes;
    this.#outbox = outbox;
    this.#marks = marks;
  }

  static async open(database: Database): Promise<AlertStore> {
    const { core } = database;
    return new AlertStore(
      database,
      await core.ensureCollection('notes'),
      await core.ensureCollection('outbox'),
      await core.ensureCollection('notify_marks'),
    );
  }

  /** False when it was told of already; then nothing is written. */
  add(note: InboxNote, { once, outbox }: AddOptions): Promise<boolean> {
    return this.#database.transact((target) => {
      if (once && !this.#mark(target, note.agent_id ?? noAgent, once)) return false;
      put(target, this.#notes, note.id, { ...note });
      keepNewest(target, this.#notes, mostNotes);
      if (outbox) {
        put(target, this.#outbox, outbox.id, { ...outbox });
        keepNewest(target, this.#outbox, mostInOutbox);
      }
      return true;
    });
  }

  /** Newest first. */
  async list({ unread, limit }: { unread: boolean; limit: number }): Promise<InboxNote[]> {
    const { records } = await this.#database
      .collection<InboxNote>(this.#notes.name)
      .find({ limit: mostNotes });
    const notes = records.map(({ data }) => data).filter(({ read }) => !unread || !read);
    return notes.toReversed().slice(0, limit);
  }

  /** The note, now read; undefined when there is none. */
  markRead(id: string): Promise<InboxNote | undefined> {
    return this.#database.transact((target) => {
      const there = target.byKey(this.#notes, id);
      if (!there) return undefined;
      const note = there.data as unknown as InboxNote;
      if (note.read) return note;
      const read = { ...note, read: true };
      put(target, this.#notes, id, read);
      return read;
    });
  }

  /** The agent is gone: its notes stay, but nothing can be repeated. */
  forget(agentId: string): Promise<void> {
    return this.#remove(this.#marks, agentId);
  }

  /** Oldest first. */
  async outbox(): Promise<OutboxEntry[]> {
    const { records } = await this.#database
      .collection<OutboxEntry>(this.#outbox.name)
      .find({ limit: mostInOutbox });
    return records.map(({ data }) => data);
  }

  /** False when it had to make room for newer ones. */
  postpone(entry: OutboxEntry): Promise<boolean> {
    return this.#database.transact((target) => {
      if (!target.byKey(this.#outbox, entry.id)) return false;
      put(target, this.#outbox, entry.id, { ...entry });
      return true;
    });
  }

  async leaveOutbox(id: string): Promise<void> {
    await this.#remove(this.#outbox, id);
  }

  #mark(target: Target, agentId: string, { topic, value }: Once): boolean {
    const marks = (target.byKey(this.#marks, agentId)?.data ?? {}) as Marks;
    if (marks[topic] === value) return false;
    put(target, this.#marks, agentId, { ...marks, [topic]: value });
    return true;
  }

  #remove(kept: Kept, key: string): Promise<void> {
    return this.#database.transact((target) => {
      const there = target.byKey(kept, key);
      if (there) target.remove(kept, there);
    });
  }
}

const noAgent = 'none';

function put(target: Target, kept: Kept, key: string, data: Document): void {
  const there = target.byKey(kept, key);
  // Notes and entries have ULIDs for keys: as ids, too, they sort by age.
  const id = there?.id ?? (kept.name === 'notify_marks' ? target.newId() : key);
  target.store(kept, id, there, target.encode(data), { key, expiresAt: 0 });
}

function keepNewest(target: Target, kept: Kept, most: number): void {
  const all = [...target.view.scan(kept.id, {}, () => true)];
  for (const old of all.slice(0, Math.max(0, all.length - most))) target.remove(kept, old);
}

type Target = Parameters<Parameters<Database['transact']>[0]>[0];
type Kept = Awaited<ReturnType<Database['core']['ensureCollection']>>;
type Document = Parameters<Target['encode']>[0];
