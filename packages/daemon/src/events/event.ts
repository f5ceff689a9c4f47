import type { DaemonSchema } from '@millrace/contract/daemon';
import type { WatchChange } from '@millrace/db';
import { rowOf, type Backend } from '../core/backend.js';

export type Event = DaemonSchema<'Event'>;
export type EventType = Event['type'];

/** What a change is to those who follow the stream. */
export interface PublicChange {
  type: EventType;
  key: string | null;
  data: unknown;
}

/** Where the reports leave a word when they have new figures, by the name of each. */
export const reportsCollection = 'reports';

interface Kind {
  changed: EventType;
  /** Absent: it is never taken away, or nobody needs to know. */
  removed?: EventType;
  /** The only key that is told. */
  only?: string;
  /** What callers see, where that is not what is stored. */
  show?: (data: unknown, now: number) => unknown;
}

const kinds: Readonly<Record<string, Kind>> = {
  sessions: { changed: 'session.changed', removed: 'session.removed' },
  pipelines: { changed: 'pipeline.changed', removed: 'pipeline.removed' },
  notes: { changed: 'note.changed', removed: 'note.removed' },
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

/** The change as an event; undefined when it is nobody's business. */
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
  // A sample is of the whole machine, and has no id of its own.
  return { type: kind.changed, key: collection === 'metrics' ? null : record.key, data };
}
