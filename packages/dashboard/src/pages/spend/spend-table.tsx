import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Link } from 'wouter';
import { queries } from '../../api/queries.js';
import { baseName, dollars, tokens } from '../../parts/format.js';
import { Id } from '../../parts/id.js';
import { column, VirtualTable, type Column } from '../../parts/virtual-table.js';

type Row = DaemonSchema<'SpendRow'>;
type Session = DaemonSchema<'Session'>;

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
  const header = by === 'repo' ? 'Repository' : by[0]!.toUpperCase() + by.slice(1);
  const [numeric, wideOnly] = [true, true];
  const columns: readonly Column<Row>[] = [
    column(header, 'minmax(0, 1fr)', ({ key }) => (
      <Key by={by} agent={agents.get(key)} value={key} />
    )),
    column('Input', '5rem', (row) => tokens(row.input_tokens), { numeric, wideOnly }),
    column('Output', '5rem', (row) => tokens(row.output_tokens), { numeric, wideOnly }),
    column('Dollars', '5.5rem', ({ exact_usd: usd }) => <Dollars usd={usd} />, { numeric }),
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
  if (by === 'agent' && value !== '') return <Id value={value} />;
  if (by === 'task' && value !== 'none') return <Task value={value} />;
  return <span title={value}>{by === 'repo' ? baseName(value) : value || 'none'}</span>;
}

/** A task of the queue, or PLAN/KEY. */
function Task({ value }: { value: string }) {
  const [id = '', key] = value.split('/');
  const { data: plans } = useQuery({ ...queries.plans(), enabled: key !== undefined });
  if (key === undefined)
    return (
      <Link href={`/tasks/${id}`}>
        <Id value={id} />
      </Link>
    );
  const title = plans?.find((plan) => plan.id === id)?.title;
  return (
    <Link href={`/plans/${id}`} title={value}>
      {title === undefined ? key : `${title}: ${key}`}
    </Link>
  );
}

function Dollars({ usd }: { usd: number | null | undefined }) {
  if (typeof usd === 'number') return dollars(usd);
  return (
    <span className="muted" title="No price is known of its models; tokens are counted">
      no price
    </span>
  );
}
