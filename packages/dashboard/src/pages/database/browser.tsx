import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import { count } from '../../parts/format.js';
import { useNarrow } from '../../parts/narrow.js';
import { Page } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Failure, Loading } from '../../parts/states.js';
import { VirtualTable } from '../../parts/virtual-table.js';
import { databaseQueries } from './api.js';
import { Changes } from './changes.js';
import { columnsFor } from './columns.js';
import { NewRecord } from './new-record.js';
import { PlanView } from './plan-view.js';
import { QueryBuilder } from './query-builder.js';
import { DraftError, emptyDraft, queryOf } from './query.js';
import { RecordEditor } from './record-editor.js';
import { useFind, type AskedQuery } from './use-find.js';
import { useWatch, type SeenChange } from './use-watch.js';

/** The records of one collection: asked for, changed, followed. */
export function Browser({ collection }: { collection: string }) {
  const [draft, setDraft] = useState(emptyDraft);
  const [error, setError] = useState<DraftError>();
  const [asked, setAsked] = useState<AskedQuery>({ body: {}, limit: 1_000, run: 0 });
  const [openId, setOpenId] = useState<string>();
  const [makes, setMakes] = useState(false);
  const [isWatching, setIsWatching] = useState(false);
  const client = useQueryClient();
  const found = useFind(collection, asked);
  const hear = useLatest((changes: readonly SeenChange[]) => {
    found.apply(changes);
    void client.invalidateQueries({ queryKey: ['db-status'] });
  });
  useShortcut('n', 'New record', () => setMakes(true));
  useShortcut('w', 'Watch or stop watching', () => setIsWatching(!isWatching));
  const { filter } = asked.body;
  const watching = useWatch({ collection, filter, isOn: isWatching, onChanges: hear });
  const fields = useFields(found.records);
  const run = () => {
    try {
      const body = queryOf(draft);
      setError(undefined);
      setAsked(({ run: before }) => ({ body, limit: Number(draft.limit), run: before + 1 }));
    } catch (mistake) {
      if (!(mistake instanceof DraftError)) throw mistake;
      setError(mistake);
    }
  };
  const runAgain = () => setAsked((before) => ({ ...before, run: before.run + 1 }));
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
          <button type="button" className="primary" onClick={() => setMakes(true)}>
            New record
          </button>
        </>
      }
    >
      <Indexes collection={collection} />
      <QueryBuilder {...{ draft, error, fields }} onDraft={setDraft} onRun={run} />
      {isWatching && <Changes watching={watching} onOpen={setOpenId} onRunAgain={runAgain} />}
      <Results found={found} isFiltered={filter !== undefined} onOpen={setOpenId} />
      {openId !== undefined && (
        <RecordEditor
          key={openId}
          collection={collection}
          id={openId}
          onClose={() => setOpenId(undefined)}
          onChanged={runAgain}
        />
      )}
      {makes && (
        <NewRecord collection={collection} onClose={() => setMakes(false)} onMade={runAgain} />
      )}
    </Page>
  );
}

/** The same function for good, which calls the newest: an effect that uses it does not restart. */
function useLatest<Input>(run: (input: Input) => void): (input: Input) => void {
  const latest = useRef(run);
  latest.current = run;
  return useCallback((input: Input) => latest.current(input), []);
}

const looked = 50;

/** The names of the fields that the first records have, to choose from. */
function useFields(records: readonly { data: object }[]): readonly string[] {
  return useMemo(
    () => [...new Set(records.slice(0, looked).flatMap(({ data }) => Object.keys(data)))].sort(),
    [records],
  );
}

function Indexes({ collection }: { collection: string }) {
  const status = useQuery(databaseQueries.status());
  const here = status.data?.collections.find(({ name }) => name === collection);
  if (!here) return null;
  return (
    <p className="muted">
      {count(here.records)} {here.records === 1 ? 'record' : 'records'}
      {here.indexes.length > 0 && `, indexed by ${here.indexes.map(({ name }) => name).join('; ')}`}
    </p>
  );
}

interface ResultsProps {
  found: ReturnType<typeof useFind>;
  isFiltered: boolean;
  onOpen: (id: string) => void;
}

function Results({ found, isFiltered, onOpen }: ResultsProps) {
  const { query, records, plan, readOn } = found;
  const isNarrow = useNarrow();
  const failure = query.isError && <Failure error={query.error} onRetry={query.refetch} />;
  if (query.isPending) return <Loading />;
  if (records.length === 0 && failure) return failure;
  return (
    <>
      {failure}
      {plan && <PlanView plan={plan} />}
      {records.length === 0 ? (
        <Nothing isFiltered={isFiltered} />
      ) : (
        <div className="stack db-results">
          <VirtualTable
            label="Records"
            columns={columnsFor(onOpen, isNarrow)}
            rows={records}
            rowKey={({ id }) => id}
            onNearEnd={readOn}
          />
          <p className="muted" role="status">
            {count(records.length)} shown{query.hasNextPage && ', more as you scroll'}
          </p>
        </div>
      )}
    </>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No record matches.">
      No comparison goes across types: <code>18</code> is a number, <code>"18"</code> is a text.
    </Empty>
  ) : (
    <Empty title="This collection has no records." />
  );
}
