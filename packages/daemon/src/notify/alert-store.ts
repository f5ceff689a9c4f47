import { createHash } from 'node:crypto';
import type { CommitTarget, Database, StepCollection } from '@millrace/engine';
import type { InboxNote, Once } from './alert.js';

/** An alert that waits to be sent to the webhook. */
export interface OutboxEntry {
  /** The id of the note, and the `webhook-id` of every attempt. */
  id: string;
  /** The JSON to send, the same bytes in every attempt. */
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

export const maxNotes = 1000;
export const maxOutboxEntries = 1000;
const maxKeys = 5000;

const collections = {
  notes: 'notes',
  outbox: 'outbox',
  marks: 'notify_marks',
  keys: 'notify_keys',
};
const noAgent = 'none';

/** The last value raised for one agent, by topic. */
type Marks = Record<string, string>;

/**
 * Notes, the webhook outbox and the deduplication marks, on disk. An alert is one commit: a note
 * never lacks its outbox entry and is never stored twice.
 */
export class AlertStore {
  constructor(private readonly database: Database) {}

  /** False when it is a duplicate; then nothing is written. */
  add(note: InboxNote, { once, outbox }: AddOptions): Promise<boolean> {
    return this.database.transact((target) => {
      if (once && !isNew(target, note, once)) return false;
      putNewest(target.collection<InboxNote>(collections.notes), note, maxNotes);
      if (outbox) {
        putNewest(target.collection<OutboxEntry>(collections.outbox), outbox, maxOutboxEntries);
      }
      return true;
    });
  }

  /** Newest first. */
  async list({ unread, limit }: { unread: boolean; limit: number }): Promise<InboxNote[]> {
    const { records } = await this.database
      .collection<InboxNote>(collections.notes)
      .find({ limit: maxNotes });
    const notes = records.map(({ data }) => data).filter(({ read }) => !unread || !read);
    return notes.toReversed().slice(0, limit);
  }

  /** The note, marked read; undefined when it does not exist. */
  markRead(id: string): Promise<InboxNote | undefined> {
    return this.database.transact((target) => {
      const notes = target.collection<InboxNote>(collections.notes);
      const note = notes.get(id);
      if (!note || note.read) return note;
      const read = { ...note, read: true };
      notes.put(id, read);
      return read;
    });
  }

  /** Deletes the marks of a removed agent; its notes stay. */
  deleteMarks(agentId: string): Promise<void> {
    return this.#delete(collections.marks, agentId);
  }

  /** Oldest first. */
  async outbox(): Promise<OutboxEntry[]> {
    const { records } = await this.database
      .collection<OutboxEntry>(collections.outbox)
      .find({ limit: maxOutboxEntries });
    return records.map(({ data }) => data);
  }

  /** False when the entry was deleted to make room for newer ones. */
  postpone(entry: OutboxEntry): Promise<boolean> {
    return this.database.transact((target) => {
      const outbox = target.collection<OutboxEntry>(collections.outbox);
      if (!outbox.get(entry.id)) return false;
      outbox.put(entry.id, entry);
      return true;
    });
  }

  async leaveOutbox(id: string): Promise<void> {
    await this.#delete(collections.outbox, id);
  }

  async #delete(collection: string, key: string): Promise<void> {
    await this.database.transact((target) => target.collection(collection).delete(key));
  }
}

/** Notes the value and the keys; false when one of them was raised before. */
function isNew(target: CommitTarget, { id, agent_id }: InboxNote, once: Once): boolean {
  const isOther = mark(target, agent_id ?? noAgent, once);
  const keys = (once.keys ?? []).map((key) => createHash('sha256').update(key).digest('hex'));
  const seen = target.collection<{ note: string }>(collections.keys);
  const fresh = keys.filter((key) => !seen.get(key));
  for (const key of fresh) seen.put(key, { note: id });
  if (fresh.length > 0) deleteOldKeys(seen);
  return isOther && fresh.length === keys.length;
}

/** Notes have ULIDs, so the order of notes is that of age. */
function deleteOldKeys(seen: StepCollection<{ note: string }>): void {
  const all = seen.all();
  if (all.length <= maxKeys) return;
  const oldest = all.toSorted((a, b) => (a.data.note < b.data.note ? -1 : 1));
  for (const { key } of oldest.slice(0, all.length - maxKeys)) seen.delete(key);
}

/** False when the same value was the last one raised for this agent and topic. */
function mark(target: CommitTarget, agentId: string, { topic, value }: Once): boolean {
  const collection = target.collection<Marks>(collections.marks);
  const marks = collection.get(agentId) ?? {};
  if (marks[topic] === value) return false;
  collection.put(agentId, { ...marks, [topic]: value });
  return true;
}

/** Adds a record and deletes the oldest above `max`. */
function putNewest<T extends { id: string }>(
  collection: StepCollection<T>,
  record: T,
  max: number,
): void {
  // The key is a ULID: as the record's id it makes the order of the collection that of age.
  collection.put(record.id, record, { id: record.id });
  const all = collection.all();
  for (const { key } of all.slice(0, Math.max(0, all.length - max))) collection.delete(key);
}
