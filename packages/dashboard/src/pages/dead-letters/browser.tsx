import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { count } from '../../parts/format.js';
import { useNarrow } from '../../parts/narrow.js';
import { Page, Panel } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Failure, Loaded, Loading } from '../../parts/states.js';
import { VirtualTable } from '../../parts/virtual-table.js';
import { queueQueries, type Filter, type Selector } from '../queues/api.js';
import { ActDialog, type Deed } from './act-dialog.js';
import { columnsFor } from './columns.js';
import { FilterBar } from './filter-bar.js';
import { Groups } from './groups.js';
import { TaskDialog } from './task-dialog.js';
import { useDead } from './use-dead.js';

interface Asked {
  deed: Deed;
  selector: Selector;
}

/** The dead tasks of one queue: in groups, one by one, and what can be done with them. */
export function DeadBrowser({ queue }: { queue: string }) {
  const [filter, setFilter] = useState<Filter>({});
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [openId, setOpenId] = useState<string>();
  const [asked, setAsked] = useState<Asked>();
  const groups = useQuery(queueQueries.groups(queue));
  const dead = useDead(queue, filter);
  const total = groups.data?.reduce((sum, group) => sum + group.count, 0);
  const chosen: Selector = selected.size > 0 ? { ids: [...selected] } : { filter };
  useShortcut(
    'r',
    'Redrive dead tasks',
    () => total && setAsked({ deed: 'redrive', selector: chosen }),
  );
  const changeFilter = (next: Filter) => {
    setFilter(next);
    setSelected(new Set());
  };
  return (
    <Page
      title={`Dead letters of ${queue}`}
      above={<Link href="/dead-letters">Dead letters</Link>}
      actions={
        <Actions
          what={selected.size > 0 ? `${count(selected.size)} selected` : whatOf(filter)}
          isOff={total === 0}
          onAct={(deed) => setAsked({ deed, selector: chosen })}
          onRefresh={() => void Promise.all([dead.startAgain(), groups.refetch()])}
        />
      }
    >
      <Panel title="Groups">
        <Loaded query={groups} rows={2}>
          {(list) => <Groups groups={list} filter={filter} onFilter={changeFilter} />}
        </Loaded>
      </Panel>
      <FilterBar
        filter={filter}
        errorTypes={[...new Set(groups.data?.map(({ error_type }) => error_type))]}
        handlers={[...new Set(groups.data?.map(({ handler_ref }) => handler_ref))]}
        onFilter={changeFilter}
      />
      <List
        dead={dead}
        isFiltered={Object.keys(filter).length > 0}
        selected={selected}
        onSelect={setSelected}
        onOpen={setOpenId}
      />
      {openId !== undefined && (
        <TaskDialog
          id={openId}
          onClose={() => setOpenId(undefined)}
          onAct={(deed) => {
            setOpenId(undefined);
            setAsked({ deed, selector: { ids: [openId] } });
          }}
        />
      )}
      {asked && (
        <ActDialog
          {...asked}
          queue={queue}
          onClose={() => setAsked(undefined)}
          onDone={() => {
            setAsked(undefined);
            setSelected(new Set());
            void dead.startAgain();
          }}
        />
      )}
    </Page>
  );
}

const whatOf = (filter: Filter) => (Object.keys(filter).length > 0 ? 'what matches' : 'all');

interface ActionsProps {
  what: string;
  isOff: boolean;
  onAct: (deed: Deed) => void;
  onRefresh: () => void;
}

function Actions({ what, isOff, onAct, onRefresh }: ActionsProps) {
  return (
    <>
      <button type="button" onClick={onRefresh}>
        Refresh
      </button>
      <button type="button" className="danger" disabled={isOff} onClick={() => onAct('purge')}>
        Purge {what}…
      </button>
      <button type="button" className="primary" disabled={isOff} onClick={() => onAct('redrive')}>
        Redrive {what}…
      </button>
    </>
  );
}

interface ListProps {
  dead: ReturnType<typeof useDead>;
  isFiltered: boolean;
  selected: ReadonlySet<string>;
  onSelect: (selected: ReadonlySet<string>) => void;
  onOpen: (id: string) => void;
}

// As many ids as one call takes.
const mostSelected = 1_000;

function List({ dead, isFiltered, selected, onSelect, onOpen }: ListProps) {
  const { query, rows, readOn, startAgain } = dead;
  const isNarrow = useNarrow();
  const toggle = (id: string) => {
    const next = new Set(selected);
    if (!next.delete(id) && next.size < mostSelected) next.add(id);
    onSelect(next);
  };
  const failure = query.isError && <Failure error={query.error} onRetry={startAgain} />;
  if (query.isPending) return failure || <Loading />;
  if (rows.length === 0) {
    if (failure || query.isFetching) return failure || <Loading />;
    return isFiltered ? (
      <Empty title="No dead task matches." />
    ) : (
      <Empty title="No task of this queue is dead." />
    );
  }
  return (
    <div className="stack dead-list">
      {failure}
      <VirtualTable
        label="Dead tasks"
        columns={columnsFor({ selected, toggle, onOpen, isNarrow })}
        rows={rows}
        rowKey={({ id }) => id}
        onNearEnd={readOn}
      />
      <p className="muted" role="status">
        {count(rows.length)} shown{query.hasNextPage && ', more as you scroll'}
      </p>
    </div>
  );
}
