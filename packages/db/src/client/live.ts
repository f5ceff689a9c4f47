import { type JsonObject, refuse } from '@millrace/engine/value/documents';
import { parsePath, type Row } from '@millrace/engine/value/path';
import type { Filter } from '@millrace/engine/value/filter';
import { Sorter, toSortOrder, type OrderBy } from '@millrace/engine/query/sort';
import type { LiveQuery } from '@millrace/engine/query/typed-query';
import { Refusal } from '@millrace/kit/errors';
import type { StoredRecord } from '@millrace/engine/format/record';
import { type LiveResult, LiveRecords, type Difference } from '@millrace/engine/watch/live';
import type { VisibleChange, WatchChange } from '@millrace/engine/watch/message';
import type { Session } from './session.js';
import { ResumingWatch, type RemoteWatchOptions } from './watch.js';

export type RemoteLiveQuery<T = never> = LiveQuery<T> &
  Pick<RemoteWatchOptions, 'reconnectForMs' | 'onCut'>;

type PlainLiveQuery = Omit<RemoteLiveQuery, 'filter' | 'orderBy'> & {
  filter?: Filter | undefined;
  orderBy?: readonly OrderBy[] | undefined;
};

/** Errors after which the query cannot resume and must be read again. */
const lostPlace = new Set(['WATCH_COMPACTED', 'BAD_RESUME_TOKEN']);

/**
 * A live query over a connection: keeps the result in memory, sorted like on the server, and
 * updates it from a watch. Survives reconnects and a compacted log.
 */
export function live<T extends object>(
  session: Session,
  collection: string,
  { orderBy, limit, ...watched }: PlainLiveQuery,
): AsyncGenerator<LiveResult<T>, void, void> {
  const sorter = new Sorter(orderOf(orderBy));
  const records = new LiveRecords<T>(sorter, limit || Infinity, (change) => recordOf(change));
  return results(
    () =>
      new ResumingWatch<T>(session, collection, {
        ...watched,
        includeInitial: true,
      }),
    records,
    watched.signal,
  );
}

async function* results<T extends object>(
  open: () => ResumingWatch<T>,
  empty: LiveRecords<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<LiveResult<T>, void, void> {
  let records = empty;
  let isFirst = true;
  while (!signal?.aborted) {
    const start = new Map<string, VisibleChange>();
    try {
      for await (const { kind, changes, seq } of open()) {
        if (kind === 'initial') for (const change of changes) take(start, change);
        else if (kind === 'initial_end') {
          records.load([...start.values()]);
          start.clear();
          const difference = records.settle();
          if (isFirst || isAny(difference)) yield { records: records.window, ...difference, seq };
          isFirst = false;
        } else if (kind === 'changes') {
          const difference = records.apply(changes.map(visible));
          if (isAny(difference)) yield { records: records.window, ...difference, seq };
        }
      }
      return;
    } catch (error) {
      if (!(error instanceof Refusal && lostPlace.has(error.code))) throw error;
      records = records.renewed();
    }
  }
}

function take<T extends object>(start: Map<string, VisibleChange>, change: WatchChange<T>): void {
  const { id } = change.record;
  if (change.op === 'delete' || change.op === 'expire') start.delete(id);
  else start.set(id, visible(change));
}

function isAny({ added, changed, removed }: Difference<unknown>): boolean {
  return added.length + changed.length + removed.length > 0;
}

/** A received record with the interface that sorting expects of a stored one. */
class RemoteRow implements Row {
  constructor(readonly record: StoredRecord<object>) {}

  get id() {
    return this.record.id;
  }
  get key() {
    return this.record.key;
  }
  get rev() {
    return this.record.rev;
  }
  get seq() {
    return this.record.seq;
  }
  get createdAt() {
    return this.record.createdAt.getTime();
  }
  get updatedAt() {
    return this.record.updatedAt.getTime();
  }
  get expiresAt() {
    return this.record.expiresAt?.getTime() ?? 0;
  }
  get data() {
    return this.record.data as JsonObject;
  }
  top(name: string) {
    return Object.hasOwn(this.data, name) ? this.data[name] : undefined;
  }
}

function visible<T extends object>(change: WatchChange<T>): VisibleChange {
  const { op, collection, entered, left } = change;
  const { id, seq } = change.record;
  const after = op === 'insert' || op === 'update' ? new RemoteRow(change.record) : undefined;
  // Sorting reads only the fields of a row.
  return { op, collection, id, seq, entered, left, after: after as VisibleChange['after'] };
}

function recordOf<T>({ after }: VisibleChange): StoredRecord<T> {
  return (after as unknown as RemoteRow).record as StoredRecord<T>;
}

function orderOf(steps: readonly OrderBy[] = []) {
  return toSortOrder(
    steps.map(({ field, desc = false }, i) => ({
      path: parsePath(field, (problem) =>
        refuse('BAD_REQUEST', `orderBy[${i}].field ${problem}: "${field}".`),
      ),
      desc,
    })),
  );
}
