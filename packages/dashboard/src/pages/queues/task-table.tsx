import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import { Button, SelectField } from '../../parts/controls.js';
import { count } from '../../parts/format.js';
import { setParams, useParamText } from '../../parts/location.js';
import { Empty, Failure, Loading } from '../../parts/states.js';
import { TimeField } from '../../parts/time-field.js';
import { useIsNarrow } from '../../parts/use-is-narrow.js';
import { VirtualTable } from '../../parts/virtual-table.js';
import { queueQueries, type BulkAction, type TaskFilter, type TaskRow } from '../../queue/api.js';
import { BulkDialog } from '../../queue/bulk-dialog.js';
import { taskColumns } from './task-columns.js';
import { statuses, taskFilterIn, type FilterField, type Order } from './task-filter.js';
import { useTasks } from './use-tasks.js';

// The maximum number of ids in one request.
const maxSelected = 1_000;

/** The tasks of a queue by status, with filters, bulk cancel, redrive and purge. */
export function TaskTable({ queue }: { queue: string }) {
  const text = useParamText();
  const { filter, status, order } = useMemo(() => taskFilterIn(text), [text]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [action, setAction] = useState<BulkAction>();
  const tasks = useTasks(queue, filter, order);
  const change = (changes: Record<string, string>) => {
    setSelected(new Set());
    setParams(changes);
  };
  const isPending = status === 'PENDING';
  const finish = () => {
    setAction(undefined);
    setSelected(new Set());
    void tasks.reload();
  };
  const toggle = (id: string) => {
    const next = new Set(selected);
    if (!next.delete(id) && next.size < maxSelected) next.add(id);
    setSelected(next);
  };
  const toggleAll = () => {
    const ids = selected.size > 0 ? [] : tasks.rows.slice(0, maxSelected).map(({ id }) => id);
    setSelected(new Set(ids));
  };
  const { status: _, ...fields } = filter;
  return (
    <div className="stack">
      <div className="chips" role="group" aria-label="Status">
        {(Object.keys(statuses) as TaskRow['status'][]).map((value) => (
          <Button
            key={value}
            className="chip"
            aria-pressed={status === value}
            onClick={() => change({ status: value === 'PENDING' ? '' : value })}
          >
            {statuses[value]} <Count queue={queue} filter={{ ...filter, status: [value] }} />
          </Button>
        ))}
      </div>
      <Filters filter={filter} order={order} isPending={isPending} onChange={change} />
      {isPending && (
        <div className="row">
          <Button
            className="danger"
            disabled={tasks.rows.length === 0}
            onClick={() => setAction('cancel')}
          >
            {selected.size > 0 ? `Cancel ${count(selected.size)} selected…` : 'Cancel matching…'}
          </Button>
        </div>
      )}
      {status === 'DEAD' && <DeadActions {...{ queue, selected }} onAction={setAction} />}
      <List
        tasks={tasks}
        {...{ status, selected, toggle, toggleAll }}
        isFiltered={Object.keys(fields).length > 0}
      />
      {action && (
        <BulkDialog
          {...{ action, queue }}
          selector={
            action === 'cancel' && selected.size === 0
              ? { filter: { ...fields, status: 'PENDING' } }
              : { ids: [...selected] }
          }
          onClose={() => setAction(undefined)}
          onDone={finish}
        />
      )}
    </div>
  );
}

interface DeadActionsProps {
  queue: string;
  selected: ReadonlySet<string>;
  onAction: (action: BulkAction) => void;
}

function DeadActions({ queue, selected, onAction }: DeadActionsProps) {
  const size = count(selected.size);
  return (
    <div className="row">
      <Button disabled={selected.size === 0} onClick={() => onAction('redrive')}>
        Redrive {size} selected…
      </Button>
      <Button className="danger" disabled={selected.size === 0} onClick={() => onAction('purge')}>
        Purge {size} selected…
      </Button>
      <Link href={`/dead-letters/${queue}`}>Groups, redrive and purge by filter</Link>
    </div>
  );
}

function Count({ queue, filter }: { queue: string; filter: TaskFilter }) {
  const { data } = useQuery(queueQueries.count(queue, filter));
  return data ? `${data.is_estimate ? '≈ ' : ''}${count(data.count)}` : null;
}

interface FiltersProps {
  filter: TaskFilter;
  order: Order;
  isPending: boolean;
  onChange: (changes: Record<string, string>) => void;
}

function Filters({ filter, order, isPending, onChange }: FiltersProps) {
  const field = (name: FilterField, label: string) => (
    <label className="field">
      {label}
      <input
        placeholder="any"
        defaultValue={filter[name] ?? ''}
        key={filter[name] ?? ''}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onChange({ [name]: event.currentTarget.value.trim() });
        }}
        onBlur={(event) => {
          const value = event.target.value.trim();
          if (value !== (filter[name] ?? '')) onChange({ [name]: value });
        }}
      />
    </label>
  );
  const isNarrow = useIsNarrow();
  const controls = (
    <div className="task-filters" role="group" aria-label="Filter">
      {field('handler_ref', 'Handler')}
      {field('group_key', 'Group')}
      <TimeField
        label="Submitted since"
        value={filter.from}
        onChange={(from) => onChange({ from })}
      />
      <TimeField label="Submitted before" value={filter.to} onChange={(to) => onChange({ to })} />
      <SelectField
        label="Order"
        value={order}
        options={{
          newest: 'newest first',
          oldest: 'oldest first',
          ...(isPending && { next: 'next attempt first' }),
        }}
        onChange={(next) => onChange({ order: next === 'newest' ? '' : next })}
      />
    </div>
  );
  if (!isNarrow) return controls;
  return (
    <details>
      <summary>Filter and order</summary>
      {controls}
    </details>
  );
}

interface ListProps {
  tasks: ReturnType<typeof useTasks>;
  status: TaskRow['status'];
  selected: ReadonlySet<string>;
  toggle: (id: string) => void;
  toggleAll: () => void;
  isFiltered: boolean;
}

function List({ tasks, status, selected, toggle, toggleAll, isFiltered }: ListProps) {
  const { query, rows, fetchMore, reload } = tasks;
  const isNarrow = useIsNarrow();
  const failure = query.isError && <Failure error={query.error} onRetry={reload} />;
  if (query.isPending) return failure || <Loading />;
  if (rows.length === 0) {
    if (failure || (query.isFetching && query.hasNextPage)) return failure || <Loading />;
    const name = statuses[status].toLowerCase();
    return (
      <Empty title={isFiltered ? `No ${name} task matches the filter.` : `No ${name} tasks.`} />
    );
  }
  return (
    <div className="stack queue-tasks">
      {failure}
      <VirtualTable
        label="Tasks"
        columns={taskColumns({
          status,
          selected,
          isSelectable: status === 'PENDING' || status === 'DEAD',
          isNarrow,
          onToggle: toggle,
          onToggleAll: toggleAll,
        })}
        rows={rows}
        rowKey={({ id }) => id}
        narrowRowHeight={status === 'DEAD' ? 64 : 48}
        onNearEnd={fetchMore}
      />
      <p className="muted" role="status">
        {count(rows.length)} shown{query.hasNextPage && ', more as you scroll'}
      </p>
    </div>
  );
}
