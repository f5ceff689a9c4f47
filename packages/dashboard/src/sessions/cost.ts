import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { queries } from '../api/queries.js';
import { dollars, tokens, unknown } from '../parts/format.js';

type SpendRow = DaemonSchema<'SpendRow'>;

type Session = Pick<DaemonSchema<'Session'>, 'id' | 'backend_session_id'>;

/** What each agent has cost so far; undefined where nothing was measured. */
export function useCosts(): (session: Session) => SpendRow | undefined {
  const { data } = useQuery(queries.spend());
  return useMemo(() => {
    const rows = new Map(data?.by_agent.map((row) => [row.key, row]));
    // Measured from a transcript, which may know no other name than the backend's own.
    return ({ id, backend_session_id: own }) =>
      rows.get(id) ?? (own === null ? undefined : rows.get(own));
  }, [data]);
}

/** Dollars, or tokens where the backend has no price. */
export function costText(row: SpendRow | undefined): string {
  if (!row) return unknown;
  if (row.usd !== null) return dollars(row.usd);
  return `${tokens(row.input_tokens + row.output_tokens)} tok`;
}
