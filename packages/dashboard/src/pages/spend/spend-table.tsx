import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Link } from 'wouter';
import { queries } from '../../api/queries.js';
import { baseName, dollars, tokens } from '../../parts/format.js';
import { VirtualTable, type Column } from '../../parts/virtual-table.js';

type Row = DaemonSchema<'SpendRow'>;
type Session = DaemonSchema<'Session'>;

/** By list price; those without one last. */
export function dearestFirst(rows: readonly Row[]): readonly Row[] {
  return rows.toSorted((a, b) => (b.exact_usd ?? -1) - (a.exact_usd ?? -1));
}

/** Rows of a rollup. */
export function SpendTable({ rows, by }: { rows: readonly Row[]; by: string }) {
  const { data: sessions } = useQuery({ ...queries.sessions(), enabled: by === 'agent' });
  const agents = useMemo(
    () =>
      new Map(
        sessions?.flatMap((session) =>
          [session.id, session.backend_session_id].map((key) => [key, session] as const),
        ),
      ),
    [sessions],
  );
  const columns: readonly Column<Row>[] = [
    {
      id: 'key',
      header: by === 'repo' ? 'Repository' : by[0]!.toUpperCase() + by.slice(1),
      width: 'minmax(0, 1fr)',
      cell: ({ key }) => <Key by={by} agent={agents.get(key)} value={key} />,
    },
    {
      id: 'in',
      header: 'Input',
      width: '5rem',
      numeric: true,
      wideOnly: true,
      cell: ({ input_tokens }) => tokens(input_tokens),
    },
    {
      id: 'out',
      header: 'Output',
      width: '5rem',
      numeric: true,
      wideOnly: true,
      cell: ({ output_tokens }) => tokens(output_tokens),
    },
    {
      id: 'usd',
      header: 'Dollars',
      width: '5.5rem',
      numeric: true,
      cell: ({ exact_usd: usd }) =>
        typeof usd === 'number' ? (
          dollars(usd)
        ) : (
          <span className="muted" title="No price is known of its models; tokens are counted">
            no price
          </span>
        ),
    },
  ];
  return (
    <div className="spend-table">
      <VirtualTable
        label={`Spend by ${by}`}
        columns={columns}
        rows={rows}
        rowKey={({ key }) => key}
        rowHeight={34}
        narrowRowHeight={40}
      />
    </div>
  );
}

function Key({ by, agent, value }: { by: string; agent: Session | undefined; value: string }) {
  if (by === 'agent' && agent) return <Link href={`/agents/${agent.id}`}>{agent.name}</Link>;
  return <span title={value}>{by === 'repo' ? baseName(value) : value || 'none'}</span>;
}
