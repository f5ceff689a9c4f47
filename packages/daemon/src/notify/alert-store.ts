import { createHash } from 'node:crypto';
import type { CommitTarget, Database, StepCollection } from '@millrace/engine';
import type { DaemonSchema } from '@millrace/contract/daemon';

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

export type InboxNote = DaemonSchema<'InboxNote'>;
export type NoteKind = DaemonSchema<'NoteKind'>;

/** An alert for the user. */
export interface Alert {
  kind: NoteKind;
  severity: DaemonSchema<'Severity'>;
  /** One line. */
  title: string;
  /** Details; may be empty. */
  body: string;
  /** The session concerned; null when none. */
  agentId: string | null;
  /** The question to answer, if there is one. */
  questionId?: string | undefined;
}

/**
 * Deduplication key: an alert is raised unless the last one of this agent and topic had the same
 * value. Stored together with the note, so it survives restarts.
 */
export interface Once {
  topic: string;
  value: string;
  /** Names of the event itself: an alert with a name that was raised before is never raised again. */
  keys?: readonly string[];
}

/** The part of Notify that raises alerts. */
export interface AlertSink {
  /** Resolves when the note is on disk. Desktop and webhook delivery follow asynchronously. */
  raise(alert: Alert, once?: Once): Promise<void>;
}

/** Optional channels in addition to the inbox, which has every alert. */
export const channels: Readonly<Record<NoteKind, { desktop: boolean; webhook: boolean }>> = {
  waiting_for_input: { desktop: true, webhook: true },
  stuck_idle: { desktop: true, webhook: true },
  orphaned: { desktop: true, webhook: true },
  errored: { desktop: true, webhook: true },
  context_warning: { desktop: true, webhook: true },
  context_critical: { desktop: true, webhook: true },
  ci_failed: { desktop: true, webhook: false },
  branch_merged: { desktop: false, webhook: false },
  branch_behind: { desktop: false, webhook: false },
};

const maxTitleLength = 200;
const maxBodyLength = 2000;

/** Names and reasons come from agents, so control characters are removed and texts are cut. */
export function tidied(alert: Alert): Alert {
  return {
    ...alert,
    title: cut(plain(alert.title).replaceAll(/\s+/g, ' '), maxTitleLength),
    body: cut(plain(alert.body), maxBodyLength),
  };
}

export function textOf({ title, body }: Pick<Alert, 'title' | 'body'>): string {
  return body === '' ? title : `${title}\n\n${body}`;
}

function plain(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\P{Cc}\n]/gu, ' ')
    .trim();
}

function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  // Do not split a surrogate pair.
  return `${text.slice(0, maxLength - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}
