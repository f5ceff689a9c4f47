import { useQuery } from '@tanstack/react-query';
import { count, millis } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { readAdvice, type IndexAdvice } from './api.js';
import { useCreateIndex } from './create-index.js';

interface AdviceProps {
  collection: string;
  canCreate: boolean;
}

/** Indexes that would have served slow queries of the collection. */
export function Advice({ collection, canCreate }: AdviceProps) {
  const advice = useQuery({
    queryKey: ['db-advice'],
    queryFn: readAdvice,
    refetchInterval: 10_000,
  });
  return (
    <Panel title="Advice">
      <Loaded query={advice} rows={1}>
        {(list) => {
          const shown = list.filter((one) => one.collection === collection);
          return shown.length === 0 ? (
            <p className="panel-body muted">
              No slow query since the start of the server would have been faster with another index.
            </p>
          ) : (
            <AdviceTable advice={shown} canCreate={canCreate} />
          );
        }}
      </Loaded>
    </Panel>
  );
}

function AdviceTable({
  advice,
  canCreate,
}: {
  advice: readonly IndexAdvice[];
  canCreate: boolean;
}) {
  return (
    <div className="scroll-x" tabIndex={0} role="group" aria-label="Advised indexes">
      <table role="table" className="table cards">
        <thead role="rowgroup">
          <tr role="row">
            <th role="columnheader" scope="col">
              Fields
            </th>
            <th role="columnheader" scope="col" className="numeric">
              Slow queries
            </th>
            <th role="columnheader" scope="col" className="numeric">
              Time
            </th>
            <th role="columnheader" scope="col" className="numeric">
              Rows read
            </th>
            <th role="columnheader" scope="col" className="numeric">
              Rows returned
            </th>
            <th role="columnheader" scope="col">
              Last query
            </th>
            {canCreate && (
              <th role="columnheader" scope="col">
                Action
              </th>
            )}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {advice.map((one) => (
            <AdviceRow key={one.fields.join(',')} advice={one} canCreate={canCreate} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function AdviceRow({ advice, canCreate }: { advice: IndexAdvice; canCreate: boolean }) {
  const { collection, fields } = advice;
  const create = useCreateIndex(collection);
  return (
    <tr role="row">
      <th role="rowheader" scope="row" className="mono">
        {fields.join(', ')}
      </th>
      <td role="cell" data-label="Queries" className="numeric">
        {count(advice.query_count)}
      </td>
      <td role="cell" data-label="Time" className="numeric">
        {millis(advice.total_ms)}
      </td>
      <td role="cell" data-label="Rows read" className="numeric">
        {count(advice.rows_scanned)}
      </td>
      <td role="cell" data-label="Returned" className="numeric">
        {count(advice.rows_returned)}
      </td>
      <td role="cell" data-label="Last query">
        <span className="mono">{advice.filter}</span>
      </td>
      {canCreate && (
        <td role="cell">
          <button
            type="button"
            className="small"
            disabled={create.isPending}
            onClick={() => create.mutate({ fields })}
          >
            Create
          </button>
        </td>
      )}
    </tr>
  );
}
