import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import { count } from '../../parts/format.js';
import { useIsNarrow } from '../../parts/use-is-narrow.js';
import { Page } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Failure, Loading } from '../../parts/states.js';
import { VirtualTable } from '../../parts/virtual-table.js';
import { databaseQueries, type CollectionStatus } from './api.js';
import { Changes } from './changes.js';
import { columnsFor } from './columns.js';
import { NewRecord } from './new-record.js';
import { PlanView } from './plan-view.js';
import { QueryBuilder } from './query-builder.js';
import { DraftError, emptyDraft, queryOf } from './query.js';
import { RecordEditor } from './record-editor.js';
import { useFind, type SubmittedQuery } from './use-find.js';
import { useWatch, type WatchedChange } from './use-watch.js';

/** The records of one collection: query, edit, watch. */
export function Browser({ collection }: { collection: string }) {
  const [draft, setDraft] = useState(emptyDraft);
  const [error, setError] = useState<DraftError>();
  const [submitted, setSubmitted] = useState<SubmittedQuery>({ body: {}, limit: 1_000, run: 0 });
  const [openId, setOpenId] = useState<string>();
  const [isCreating, setIsCreating] = useState(false);
  const [isWatching, setIsWatching] = useState(false);
  const client = useQueryClient();
  const found = useFind(collection, submitted);
  const onChanges = useLatest((changes: readonly WatchedChange[]) => {
    found.apply(changes);
    void client.invalidateQueries({ queryKey: ['db-status'] });
  });
  useShortcut('n', 'New record', () => setIsCreating(true));
  useShortcut('w', 'Start or stop watching', () => setIsWatching(!isWatching));
  const { filter } = submitted.body;
  const watching = useWatch({ collection, filter, isOn: isWatching, onChanges });
  const fields = useFields(found.records);
  const run = () => {
    try {
      const body = queryOf(draft);
      setError(undefined);
      setSubmitted(({ run: previous }) => ({
        body,
        limit: Number(draft.limit),
        run: previous + 1,
      }));
    } catch (mistake) {
      if (!(mistake instanceof DraftError)) throw mistake;
      setError(mistake);
    }
  };
  const runAgain = () => setSubmitted((previous) => ({ ...previous, run: previous.run + 1 }));
  return (
    <Page
      title={collection}
      above={<Link href="/database">Database</Link>}
      actions={
        <>
          <button
            type="button"
            aria-pressed={isWatching}
            className={isWatching ? 'chip-on' : undefined}
            onClick={() => setIsWatching(!isWatching)}
          >
            {isWatching ? 'Stop watching' : 'Watch live'}
          </button>
          <button type="button" className="primary" onClick={() => setIsCreating(true)}>
            New record
          </button>
        </>
      }
    >
      <Indexes collection={collection} />
      <QueryBuilder {...{ draft, error, fields }} onDraft={setDraft} onRun={run} />
      {isWatching && <Changes watching={watching} onOpen={setOpenId} onRunAgain={runAgain} />}
      <Results {...{ collection, found }} isFiltered={filter !== undefined} onOpen={setOpenId} />
      {openId !== undefined && (
        <RecordEditor
          key={openId}
          collection={collection}
          id={openId}
          onClose={() => setOpenId(undefined)}
          onChanged={runAgain}
        />
      )}
      {isCreating && (
        <NewRecord
          collection={collection}
          onClose={() => setIsCreating(false)}
          onCreated={runAgain}
        />
      )}
    </Page>
  );
}

/** A stable function that calls the latest one, so that effects using it do not restart. */
function useLatest<Input>(run: (input: Input) => void): (input: Input) => void {
  const latest = useRef(run);
  latest.current = run;
  return useCallback((input: Input) => latest.current(input), []);
}

const sampledRecords = 50;

/** Field names of the first records, offered as suggestions. */
function useFields(records: readonly { data: object }[]): readonly string[] {
  return useMemo(
    () =>
      [
        ...new Set(records.slice(0, sampledRecords).flatMap(({ data }) => Object.keys(data))),
      ].sort(),
    [records],
  );
}

/** The status of a collection; null when it does not exist, undefined until that is known. */
function useCollection(collection: string): CollectionStatus | null | undefined {
  const { data } = useQuery(databaseQueries.status());
  return data && (data.collections.find(({ name }) => name === collection) ?? null);
}

function Indexes({ collection }: { collection: string }) {
  const here = useCollection(collection);
  if (!here) return null;
  return (
    <p className="muted">
      {count(here.records)} {here.records === 1 ? 'record' : 'records'}
      {here.indexes.length > 0 && `, indexes: ${here.indexes.map(({ name }) => name).join('; ')}`}
    </p>
  );
}

interface ResultsProps {
  collection: string;
  found: ReturnType<typeof useFind>;
  isFiltered: boolean;
  onOpen: (id: string) => void;
}

function Results({ collection, found, isFiltered, onOpen }: ResultsProps) {
  const { query, records, plan, fetchMore } = found;
  const isNarrow = useIsNarrow();
  const failure = query.isError && <Failure error={query.error} onRetry={query.refetch} />;
  if (query.isPending) return <Loading />;
  if (records.length === 0 && failure) return failure;
  return (
    <>
      {failure}
      {plan && <PlanView plan={plan} />}
      {records.length === 0 ? (
        <NoRecords collection={collection} isFiltered={isFiltered} />
      ) : (
        <div className="stack db-results">
          <VirtualTable
            label="Records"
            columns={columnsFor(onOpen, isNarrow)}
            rows={records}
            rowKey={({ id }) => id}
            onNearEnd={fetchMore}
          />
          <p className="muted" role="status">
            {count(records.length)} shown{query.hasNextPage && ', more as you scroll'}
          </p>
        </div>
      )}
    </>
  );
}

function NoRecords({ collection, isFiltered }: { collection: string; isFiltered: boolean }) {
  if (useCollection(collection) === null) {
    return (
      <Empty title="This collection does not exist.">
        Check the name, or insert a record to create it.
      </Empty>
    );
  }
  return isFiltered ? (
    <Empty title="No record matches the query.">
      Comparisons are typed: <code>18</code> is a number, <code>"18"</code> is a string.
    </Empty>
  ) : (
    <Empty title="This collection has no records." />
  );
}
