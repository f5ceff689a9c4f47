import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import { Choice } from '../../parts/choice.js';
import { count } from '../../parts/format.js';
import { setParams, useIdParam, useParam, useParamText } from '../../parts/location.js';
import { Page } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { databaseQueries, type CollectionStatus } from './api.js';
import { AggregateView } from './aggregate-view.js';
import { Changes } from './changes.js';
import { fieldNames } from './fields.js';
import { ImportDialog } from './import-dialog.js';
import { Indexes } from './indexes.js';
import { NewRecord } from './new-record.js';
import { QueryBuilder } from './query-builder.js';
import { draftIn, paramsOf } from './query-params.js';
import { DraftError, queryOf, type Draft, type FindBody } from './query.js';
import { RecordEditor } from './record-editor.js';
import { Results } from './results.js';
import { SchemaView } from './schema-view.js';
import { useExport } from './use-export.js';
import { useFind } from './use-find.js';
import { useWatch, type WatchedChange } from './use-watch.js';

type Tab = 'records' | 'aggregate' | 'indexes' | 'schema';

const tabs: readonly Tab[] = ['records', 'aggregate', 'indexes', 'schema'];

/** The records of one collection: query, edit, watch. */
export function Browser({ collection }: { collection: string }) {
  const { draft, setDraft, submitted, error, run, runAgain } = useUrlQuery();
  const [openId, setOpenId] = useIdParam('record');
  const [tab, setTab] = useParam<Tab>('tab', 'records', tabs);
  const [watch, setWatch] = useParam<'off' | 'on'>('watch', 'off', ['off', 'on']);
  const [dialog, setDialog] = useState<'new' | 'import'>();
  const isWatching = watch === 'on';
  const toggleWatch = () => setWatch(isWatching ? 'off' : 'on');
  const client = useQueryClient();
  const status = useCollection(collection);
  const found = useFind(collection, submitted);
  const onChanges = useLatest((changes: readonly WatchedChange[]) => {
    found.apply(changes);
    void client.invalidateQueries({ queryKey: ['db-status'] });
  });
  useShortcut('n', 'New record', () => setDialog('new'));
  useShortcut('w', 'Start or stop watching', toggleWatch);
  const { filter } = submitted.body;
  const watching = useWatch({ collection, filter, isOn: isWatching, onChanges });
  const names = useMemo(() => fieldNames(found.records), [found.records]);
  const exports = [
    useExport(collection, submitted.body, 'jsonl'),
    useExport(collection, submitted.body, 'csv'),
  ];
  const close = () => setDialog(undefined);
  return (
    <Page
      title={collection}
      above={<Link href="/database">Database</Link>}
      actions={
        <>
          {exports.map(({ isPending, mutate, text }) => (
            <button key={text} type="button" disabled={isPending} onClick={() => mutate()}>
              {text}
            </button>
          ))}
          <button type="button" onClick={() => setDialog('import')}>
            Import…
          </button>
          <button
            type="button"
            aria-pressed={isWatching}
            className={isWatching ? 'chip-on' : undefined}
            onClick={toggleWatch}
          >
            {isWatching ? 'Stop watching' : 'Watch live'}
          </button>
          <button type="button" className="primary" onClick={() => setDialog('new')}>
            New record
          </button>
        </>
      }
    >
      {status && <Head status={status} tab={tab} onTab={setTab} />}
      {tab === 'indexes' && status ? (
        <Indexes {...status} />
      ) : tab === 'schema' && status ? (
        <SchemaView collection={collection} />
      ) : (
        <>
          <QueryBuilder
            {...{ draft, error }}
            fields={names}
            isFilterOnly={tab === 'aggregate'}
            isSearchable={status?.indexes.some(({ kind }) => kind === 'search') ?? false}
            onDraft={setDraft}
            onRun={run}
          />
          {tab === 'aggregate' ? (
            <AggregateView {...{ collection, filter, status }} fields={names} run={submitted.run} />
          ) : (
            <>
              {isWatching && (
                <Changes watching={watching} onOpen={setOpenId} onRunAgain={runAgain} />
              )}
              <Results {...{ collection, found, status, names, submitted }} onOpen={setOpenId} />
            </>
          )}
        </>
      )}
      {openId !== '' && (
        <RecordEditor
          key={openId}
          collection={collection}
          id={openId}
          onClose={() => setOpenId('')}
          onChanged={runAgain}
        />
      )}
      {dialog === 'new' && (
        <NewRecord collection={collection} onClose={close} onCreated={runAgain} />
      )}
      {dialog === 'import' && (
        <ImportDialog collection={collection} onClose={close} onImported={runAgain} />
      )}
    </Page>
  );
}

/** The query in the address, and the draft that is edited until it runs. */
function useUrlQuery() {
  const text = useParamText();
  const inUrl = useMemo(() => paramsOf(draftIn(text)), [text]);
  // Other parameters, such as the open record, must not run the query again.
  const key = JSON.stringify(inUrl);
  const [draft, setDraft] = useState<Draft>(() => draftIn(text));
  const [error, setError] = useState<DraftError>();
  const [runCount, setRunCount] = useState(0);
  useEffect(() => {
    setDraft(draftIn(text));
    setError(undefined);
  }, [key]);
  const submitted = useMemo(() => {
    const wanted = draftIn(text);
    return { body: bodyOf(wanted), limit: Number(wanted.limit), run: runCount };
  }, [key, runCount]);
  const runAgain = () => setRunCount((before) => before + 1);
  const run = () => {
    try {
      queryOf(draft);
    } catch (mistake) {
      if (!(mistake instanceof DraftError)) throw mistake;
      setError(mistake);
      return;
    }
    setError(undefined);
    setParams(paramsOf(draft));
    runAgain();
  };
  return { draft, setDraft, submitted, error, run, runAgain };
}

/** The query of an address; one that was written by hand may be wrong, and is then left out. */
function bodyOf(draft: Draft): FindBody {
  try {
    return queryOf(draft);
  } catch (mistake) {
    if (!(mistake instanceof DraftError)) throw mistake;
    return {};
  }
}

/** A stable function that calls the latest one, so that effects using it do not restart. */
function useLatest<Input>(run: (input: Input) => void): (input: Input) => void {
  const latest = useRef(run);
  latest.current = run;
  return useCallback((input: Input) => latest.current(input), []);
}

/** The status of a collection; null when it does not exist, undefined until that is known. */
function useCollection(collection: string): CollectionStatus | null | undefined {
  const { data } = useQuery(databaseQueries.status());
  return data && (data.collections.find(({ name }) => name === collection) ?? null);
}

interface HeadProps {
  status: CollectionStatus;
  tab: Tab;
  onTab: (tab: Tab) => void;
}

function Head({ status: { records, indexes }, tab, onTab }: HeadProps) {
  const options = [
    { value: 'records' as const, text: `Records ${count(records)}` },
    { value: 'aggregate' as const, text: 'Aggregate' },
    { value: 'indexes' as const, text: `Indexes ${indexes.length}` },
    { value: 'schema' as const, text: 'Schema' },
  ];
  return <Choice isTabs label="View" value={tab} options={options} onChange={onTab} />;
}
