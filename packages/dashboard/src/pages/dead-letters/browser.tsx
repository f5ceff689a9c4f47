import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import { Button } from '../../parts/controls.js';
import { count } from '../../parts/format.js';
import { useIsNarrow } from '../../parts/use-is-narrow.js';
import { setParams, useIdParam, useParamText } from '../../parts/location.js';
import { Page, Panel } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Failure, Loaded, Loading } from '../../parts/states.js';
import { VirtualTable } from '../../parts/virtual-table.js';
import { queueQueries, type Filter, type Selector } from '../../queue/api.js';
import { BulkDialog } from '../../queue/bulk-dialog.js';
import { columnsFor } from './columns.js';
import { FilterBar } from './filter-bar.js';
import { filterIn, filterText, paramsOf } from './filter.js';
import { Groups } from './groups.js';
import { TaskDialog, type DlqAction } from './task-dialog.js';
import { useDeadTasks } from './use-dead-tasks.js';

interface PendingAction {
  action: DlqAction;
  selector: Selector;
}

/** The dead letter queue of one queue: groups, filter, tasks, redrive and purge. */
export function DeadBrowser({ queue }: { queue: string }) {
  const paramText = useParamText();
  const filter = useMemo(() => filterIn(paramText), [paramText]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [openId, setOpenId] = useIdParam('task');
  const [pending, setPending] = useState<PendingAction>();
  const groups = useQuery(queueQueries.groups(queue));
  const dead = useDeadTasks(queue, filter);
  const total = groups.data?.reduce((sum, group) => sum + group.count, 0);
  const target: Selector = selected.size > 0 ? { ids: [...selected] } : { filter };
  useShortcut(
    'r',
    'Redrive dead tasks',
    () => total && setPending({ action: 'redrive', selector: target }),
  );
  const changeFilter = (next: Filter) => {
    setParams({ ...paramsOf(next), task: '' });
    setSelected(new Set());
  };
  return (
    <Page
      title={`Dead letters of ${queue}`}
      above={<Link href="/dead-letters">Dead letters</Link>}
      actions={
        <Actions
          label={selected.size > 0 ? `${count(selected.size)} selected` : labelOf(filter)}
          isDisabled={total === 0}
          onAction={(action) => setPending({ action, selector: target })}
          onRefresh={() => void Promise.all([dead.reload(), groups.refetch()])}
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
      {openId !== '' && (
        <TaskDialog
          id={openId}
          onClose={() => setOpenId('')}
          onAction={(action) => {
            setOpenId('');
            setPending({ action, selector: { ids: [openId] } });
          }}
        />
      )}
      {pending && (
        <BulkDialog
          {...{ ...pending, queue, filterText }}
          onClose={() => setPending(undefined)}
          onDone={() => {
            setPending(undefined);
            setSelected(new Set());
            void dead.reload();
          }}
        />
      )}
    </Page>
  );
}

const labelOf = (filter: Filter) => (Object.keys(filter).length > 0 ? 'matching' : 'all');

interface ActionsProps {
  label: string;
  isDisabled: boolean;
  onAction: (action: DlqAction) => void;
  onRefresh: () => void;
}

function Actions({ label, isDisabled, onAction, onRefresh }: ActionsProps) {
  return (
    <>
      <Button onClick={onRefresh}>Refresh</Button>
      <Button className="danger" disabled={isDisabled} onClick={() => onAction('purge')}>
        Purge {label}…
      </Button>
      <Button className="primary" disabled={isDisabled} onClick={() => onAction('redrive')}>
        Redrive {label}…
      </Button>
    </>
  );
}

interface ListProps {
  dead: ReturnType<typeof useDeadTasks>;
  isFiltered: boolean;
  selected: ReadonlySet<string>;
  onSelect: (selected: ReadonlySet<string>) => void;
  onOpen: (id: string) => void;
}

// The maximum number of ids in one request.
const maxSelected = 1_000;

function List({ dead, isFiltered, selected, onSelect, onOpen }: ListProps) {
  const { query, rows, fetchMore, reload } = dead;
  const isNarrow = useIsNarrow();
  const toggle = (id: string) => {
    const next = new Set(selected);
    if (!next.delete(id) && next.size < maxSelected) next.add(id);
    onSelect(next);
  };
  const failure = query.isError && <Failure error={query.error} onRetry={reload} />;
  if (query.isPending) return failure || <Loading />;
  if (rows.length === 0) {
    if (failure || query.isFetching) return failure || <Loading />;
    const title = isFiltered ? 'No dead task matches the filter.' : 'This queue has no dead tasks.';
    return <Empty title={title} />;
  }
  return (
    <div className="stack dead-list">
      {failure}
      <VirtualTable
        label="Dead tasks"
        columns={columnsFor({ selected, toggle, onOpen, isNarrow })}
        rows={rows}
        rowKey={({ id }) => id}
        rowHeight={52}
        narrowRowHeight={84}
        onNearEnd={fetchMore}
      />
      <p className="muted" role="status">
        {count(rows.length)} shown{query.hasNextPage && ', more as you scroll'}
      </p>
    </div>
  );
}
