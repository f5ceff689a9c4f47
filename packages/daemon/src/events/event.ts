import type { DaemonSchema } from '@millrace/contract/daemon';
import type { WatchChange } from '@millrace/engine';
import { rowOf, type Backend } from '../core/backend.js';

export type Event = DaemonSchema<'Event'>;
export type EventType = Event['type'];

/** A change as published in the event stream. */
export interface PublicChange {
  type: EventType;
  key: string | null;
  data: unknown;
}

/** Collection whose records change when a report has new figures, keyed by report. */
export const reportsCollection = 'reports';

interface Kind {
  changed: EventType;
  /** Absent when removals are not published. */
  removed?: EventType;
  /** The only published key. */
  only?: string;
  /** Maps stored data to API data, where they differ. */
  show?: (data: unknown, now: number) => unknown;
}

const kinds: Readonly<Record<string, Kind>> = {
  sessions: { changed: 'session.changed', removed: 'session.removed' },
  pipelines: { changed: 'pipeline.changed', removed: 'pipeline.removed' },
  notes: { changed: 'note.changed', removed: 'note.removed' },
  questions: {
    changed: 'question.changed',
    removed: 'question.removed',
    show: (data) => (data as { question: unknown }).question,
  },
  branches: { changed: 'branch.changed', removed: 'branch.removed' },
  settings: { changed: 'settings.changed', only: 'settings' },
  metrics: { changed: 'metrics.sampled', only: 'latest' },
  backends: {
    changed: 'backend.changed',
    removed: 'backend.removed',
    show: (data, now) => rowOf(data as Backend, now),
  },
};

const reports: Readonly<Record<string, EventType>> = {
  usage: 'usage.changed',
  savings: 'savings.changed',
  spend: 'spend.changed',
};

/** The change as an event; undefined when it is internal. */
export function publicChangeOf(change: WatchChange, now: number): PublicChange | undefined {
  const { collection, record } = change;
  if (collection === reportsCollection) {
    const type = reports[record.key];
    return type && { type, key: null, data: null };
  }
  const kind = Object.hasOwn(kinds, collection) ? kinds[collection] : undefined;
  if (!kind || (kind.only !== undefined && kind.only !== record.key)) return undefined;
  if (!('data' in record)) {
    return kind.removed && { type: kind.removed, key: record.key, data: null };
  }
  const data = kind.show ? kind.show(record.data, now) : record.data;
  // A metrics sample has no id.
  return { type: kind.changed, key: collection === 'metrics' ? null : record.key, data };
}
