import { useQuery } from '@tanstack/react-query';
import { read } from '../../api/queries.js';
import { Button } from '../../parts/controls.js';
import { DataTable, type DataColumn } from '../../parts/data-table.js';
import { count, millis } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { readAdvice, type IndexAdvice } from './api.js';
import { useCreateIndex } from './create-index.js';

/** Indexes that would have served slow queries of the collection. */
export function Advice({ collection }: { collection: string }) {
  const advice = useQuery(read(['db-advice'], readAdvice, { refetchInterval: 10_000 }));
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
            <DataTable
              label="Advised indexes"
              columns={columns}
              rows={shown}
              rowKey={({ fields }) => fields.join(',')}
            />
          );
        }}
      </Loaded>
    </Panel>
  );
}

const columns: readonly DataColumn<IndexAdvice>[] = [
  { header: 'Fields', className: 'mono', cell: ({ fields }) => fields.join(', ') },
  {
    header: 'Slow queries',
    label: 'Queries',
    numeric: true,
    cell: ({ query_count: queries }) => count(queries),
  },
  { header: 'Time', numeric: true, cell: ({ total_ms: ms }) => millis(ms) },
  { header: 'Rows read', numeric: true, cell: ({ rows_scanned: rows }) => count(rows) },
  {
    header: 'Rows returned',
    label: 'Returned',
    numeric: true,
    cell: ({ rows_returned: rows }) => count(rows),
  },
  { header: 'Last query', cell: ({ filter }) => <span className="mono">{filter}</span> },
  { header: 'Action', isUnlabelled: true, cell: (advice) => <Create advice={advice} /> },
];

function Create({ advice: { collection, fields } }: { advice: IndexAdvice }) {
  const create = useCreateIndex(collection);
  return (
    <Button
      className="small"
      disabled={create.isDisabled}
      onClick={() => create.mutate({ fields })}
    >
      Create
    </Button>
  );
}
