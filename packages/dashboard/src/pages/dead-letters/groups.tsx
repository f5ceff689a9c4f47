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
  return (
    <div className="scroll-x dead-groups">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Error</th>
            <th scope="col">One of its messages</th>
            <th scope="col">Handler</th>
            <th scope="col" className="numeric">
              HTTP
            </th>
            <th scope="col" className="numeric">
              Tasks
            </th>
            <th scope="col">Last seen</th>
          </tr>
        </thead>
        <tbody>
          {groups.slice(0, shownGroups).map((group) => {
            const isChosen = isOf(filter, group);
            const { error_type, handler_ref, http_status } = group;
            return (
              <tr key={`${error_type} ${handler_ref} ${http_status}`}>
                <th scope="row">
                  <button
                    type="button"
                    className="chip"
                    aria-pressed={isChosen}
                    title="Show only this group"
                    onClick={() => onFilter(isChosen ? {} : filterOf(group))}
                  >
                    {error_type}
                  </button>
                </th>
                <td>
                  <div className="dead-sample" title={group.sample_message}>
                    {group.sample_message ?? '–'}
                  </div>
                </td>
                <td>{handler_ref}</td>
                <td className="numeric">{http_status ?? '–'}</td>
                <td className="numeric">{count(group.count)}</td>
                <td>
                  <Time at={group.last_seen} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {groups.length > shownGroups && (
        <p className="panel-body muted">
          {groups.length - shownGroups} smaller groups are not shown.
        </p>
      )}
    </div>
  );
}
