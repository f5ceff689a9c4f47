import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { queries } from '../api/queries.js';
import { dollars, tokens, unknown } from '../parts/format.js';

type SpendRow = DaemonSchema<'SpendRow'>;

type Session = Pick<DaemonSchema<'Session'>, 'id' | 'backend_session_id'>;

/** The cost of each agent; undefined where nothing was measured. */
export function useCosts(): (session: Session) => SpendRow | undefined {
  const { data } = useQuery(queries.spend());
  return useMemo(() => {
    const rows = new Map(data?.by_agent.map((row) => [row.key, row]));
    // Rows measured from a transcript may have only the session id of the backend.
    return ({ id, backend_session_id: own }) =>
      rows.get(id) ?? (own === null ? undefined : rows.get(own));
  }, [data]);
}

/** Dollars, or tokens for a backend without a price. */
export function costText(row: SpendRow | undefined): string {
  if (!row) return unknown;
  if (row.usd !== null) return dollars(row.usd);
  return `${tokens(row.input_tokens + row.output_tokens)} tok`;
}
