import { Button } from '../../parts/controls.js';
import { DataTable, type DataColumn } from '../../parts/data-table.js';
import { count } from '../../parts/format.js';
import { Time } from '../../parts/time.js';
import type { Filter, Group } from '../../queue/api.js';
import { filterOf, isOf } from './filter.js';

interface GroupsProps {
  groups: readonly Group[];
  filter: Filter;
  onFilter: (filter: Filter) => void;
}

const shownGroups = 50;

/** Failures grouped by error, handler and HTTP status, largest first; a click filters by one. */
export function Groups({ groups, filter, onFilter }: GroupsProps) {
  const columns: DataColumn<Group>[] = [
    {
      header: 'Error',
      cell: (group) => {
        const isChosen = isOf(filter, group);
        return (
          <Button
            className="chip"
            aria-pressed={isChosen}
            title="Show only this group"
            onClick={() => onFilter(isChosen ? {} : filterOf(group))}
          >
            {group.error_type}
          </Button>
        );
      },
    },
    {
      header: 'One of its messages',
      cell: ({ sample_message: sample }) => (
        <div className="dead-sample" title={sample}>
          {sample ?? '–'}
        </div>
      ),
    },
    { header: 'Handler', cell: ({ handler_ref: handler }) => handler },
    { header: 'HTTP', numeric: true, cell: ({ http_status: status }) => status ?? '–' },
    { header: 'Tasks', numeric: true, cell: (group) => count(group.count) },
    { header: 'Last seen', cell: ({ last_seen: at }) => <Time at={at} /> },
  ];
  return (
    <div className="dead-groups">
      <DataTable
        label="Failures"
        isCards={false}
        columns={columns}
        rows={groups.slice(0, shownGroups)}
        rowKey={({ error_type: type, handler_ref: handler, http_status: status }) =>
          `${type} ${handler} ${status}`
        }
      />
      {groups.length > shownGroups && (
        <p className="panel-body muted">
          {groups.length - shownGroups} smaller groups are not shown.
        </p>
      )}
    </div>
  );
}
