import { useQueries } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Link } from 'wouter';
import { count } from '../../parts/format.js';
import { setParams, useParamText, withParams } from '../../parts/location.js';
import { Panel } from '../../parts/page.js';
import { Empty, Failure, Loading } from '../../parts/states.js';
import { Time } from '../../parts/time.js';
import { useIsNarrow } from '../../parts/use-is-narrow.js';
import { column, VirtualTable, type Column } from '../../parts/virtual-table.js';
import { queueQueries, type Filter } from '../../queue/api.js';
import { matchingGroups, type QueueGroup } from './all-groups.js';
import { FilterBar } from './filter-bar.js';
import { filterIn, filterOf, paramsOf } from './filter.js';

/** Queues whose groups are read; those with the most dead tasks come first. */
const maxQueues = 50;

/** The failures of all queues by error, handler and HTTP status, with one filter over all. */
export function AllQueues({ queues }: { queues: readonly string[] }) {
  const filter = filterIn(useParamText());
  const read = queues.slice(0, maxQueues);
  const { groups, error, isPending } = useQueries({
    queries: read.map((queue) => queueQueries.groups(queue)),
    combine: (results) => ({
      groups: results.flatMap(({ data = [] }, index) =>
        data.map((group): QueueGroup => ({ ...group, queue: read[index]! })),
      ),
      error: results.find(({ isError }) => isError)?.error,
      isPending: results.some((one) => one.isPending),
    }),
  });
  const shown = useMemo(() => matchingGroups(groups, filter), [groups, filter]);
  const isNarrow = useIsNarrow();
  const total = shown.reduce((sum, group) => sum + group.count, 0);
  return (
    <Panel title="Failures of all queues">
      <div className="panel-body stack">
        <FilterBar
          filter={filter}
          hasTimes={false}
          errorTypes={[...new Set(groups.map(({ error_type }) => error_type))]}
          handlers={[...new Set(groups.map(({ handler_ref }) => handler_ref))]}
          onFilter={(next: Filter) => setParams(paramsOf(next))}
        />
        {error && <Failure error={error} />}
        {isPending && groups.length === 0 ? (
          <Loading rows={2} />
        ) : shown.length === 0 ? (
          <Empty title="No dead task matches the filter." />
        ) : (
          <>
            <VirtualTable
              label="Failures of all queues"
              columns={columnsFor(isNarrow)}
              rows={shown}
              rowHeight={56}
              rowKey={({ queue, error_type, handler_ref, http_status }) =>
                `${queue} ${error_type} ${handler_ref} ${http_status}`
              }
            />
            <p className="muted" role="status">
              {count(total)} dead {total === 1 ? 'task' : 'tasks'} in {count(shown.length)}{' '}
              {shown.length === 1 ? 'group' : 'groups'}
              {queues.length > maxQueues && ` of the ${maxQueues} queues with the most dead tasks`}
            </p>
          </>
        )}
      </div>
    </Panel>
  );
}

function columnsFor(isNarrow: boolean): Column<QueueGroup>[] {
  const wideOnly = true;
  return [
    column('Error', 'minmax(0, 3fr)', (group) => (
      <>
        <Link
          className="row-link"
          href={`/dead-letters/${group.queue}?${withParams('', paramsOf(filterOf(group)))}`}
        >
          {group.error_type}
          {group.http_status !== null && ` ${group.http_status}`}
        </Link>
        {!isNarrow && group.sample_message && (
          <div className="ellipsis muted" title={group.sample_message}>
            {group.sample_message}
          </div>
        )}
        {isNarrow && (
          <div className="ellipsis muted">
            {group.queue} · {group.handler_ref}
          </div>
        )}
      </>
    )),
    column('Queue', 'minmax(0, 1fr)', ({ queue }) => queue, { wideOnly }),
    column('Handler', 'minmax(0, 1fr)', ({ handler_ref }) => handler_ref, { wideOnly }),
    column('Tasks', '5rem', (group) => count(group.count), { numeric: true }),
    column('Last', '6rem', ({ last_seen }) => <Time at={last_seen} />, { wideOnly }),
  ];
}
