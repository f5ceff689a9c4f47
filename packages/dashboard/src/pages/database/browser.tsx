import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import { useChoice } from '../../parts/choice.js';
import { Button, DialogButton } from '../../parts/controls.js';
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

/** The records of one collection: query, edit, watch. */
export function Browser({ collection }: { collection: string }) {
  const { draft, setDraft, submitted, error, run, runAgain } = useUrlQuery();
  const [openId, setOpenId] = useIdParam('record');
  const [watch, setWatch] = useParam<'off' | 'on'>('watch', 'off', ['off', 'on']);
  const isWatching = watch === 'on';
  const toggleWatch = () => setWatch(isWatching ? 'off' : 'on');
  const client = useQueryClient();
  const status = useCollection(collection);
  const [tab, tabs] = useChoice('tab', 'records', 'View', tabsOf(status), true);
  const found = useFind(collection, submitted);
  const onChanges = useLatest((changes: readonly WatchedChange[]) => {
    found.apply(changes);
    void client.invalidateQueries({ queryKey: ['db-status'] });
  });
  useShortcut('w', 'Start or stop watching', toggleWatch);
  const { filter } = submitted.body;
  const watching = useWatch({ collection, filter, isOn: isWatching, onChanges });
  const names = useMemo(() => fieldNames(found.records), [found.records]);
  const exports = [
    useExport(collection, submitted.body, 'jsonl'),
    useExport(collection, submitted.body, 'csv'),
  ];
  return (
    <Page
      title={collection}
      above={<Link href="/database">Database</Link>}
      actions={
        <>
          {exports.map(({ isDisabled, mutate, text }) => (
            <Button key={text} action={{ isDisabled, mutate }}>
              {text}
            </Button>
          ))}
          <DialogButton label="Import…">
            {(onClose) => <ImportDialog {...{ collection, onClose }} onImported={runAgain} />}
          </DialogButton>
          <Button
            aria-pressed={isWatching}
            className={isWatching ? 'chip-on' : undefined}
            onClick={toggleWatch}
          >
            {isWatching ? 'Stop watching' : 'Watch live'}
          </Button>
          <DialogButton className="primary" label="New record" shortcut="n">
            {(onClose) => <NewRecord {...{ collection, onClose }} onCreated={runAgain} />}
          </DialogButton>
        </>
      }
    >
      {status && tabs}
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

const tabsOf = (status: CollectionStatus | null | undefined) => ({
  records: `Records ${count(status?.records)}`,
  aggregate: 'Aggregate',
  indexes: `Indexes ${status?.indexes.length}`,
  schema: 'Schema',
});
