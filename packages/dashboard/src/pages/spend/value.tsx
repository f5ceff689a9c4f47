import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { queries } from '../../api/queries.js';
import { DataTable, type DataColumn } from '../../parts/data-table.js';
import { count, dollars, percent, unknown } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';

type Row = DaemonSchema<'UsageValueRow'>;

const usd = (value: number | null) => (value === null ? unknown : dollars(value));

const columns: readonly DataColumn<Row>[] = [
  { header: 'Backend', cell: ({ backend }) => backend },
  { header: 'Agents', numeric: true, cell: ({ sessions }) => count(sessions) },
  { header: 'Finished tasks', numeric: true, cell: (row) => count(row.finished_tasks) },
  { header: 'Merged branches', numeric: true, cell: (row) => count(row.merged_branches) },
  {
    header: 'First try',
    numeric: true,
    cell: ({ first_try_rate: rate }) => (rate === null ? unknown : percent(rate * 100)),
  },
  { header: 'Spent', numeric: true, cell: ({ exact_usd: spent }) => usd(spent) },
  { header: 'Per finished task', numeric: true, cell: (row) => usd(row.usd_per_finished_task) },
  { header: 'Per merged branch', numeric: true, cell: (row) => usd(row.usd_per_merged_branch) },
];

/** What the agents of each backend brought for their price. */
export function Value() {
  const value = useQuery(queries.usageValue());
  return (
    <Panel title="Value">
      <Loaded query={value} rows={3}>
        {({ by_backend: rows, total }) => (
          <DataTable
            label="Value by backend"
            columns={columns}
            rows={rows.length > 1 ? [...rows, total] : rows.length === 0 ? [total] : rows}
            rowKey={({ backend }) => backend}
          />
        )}
      </Loaded>
    </Panel>
  );
}
