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

/** List price, or tokens of a model without a known price. */
export function costText(row: SpendRow | undefined): string {
  if (!row) return unknown;
  if (typeof row.exact_usd === 'number') return dollars(row.exact_usd);
  return `${tokens(row.input_tokens + row.output_tokens)} tok`;
}

/** A time in which nothing was used cost nothing, unless a model has no price. */
export function spentText(
  rollup: DaemonSchema<'SpendRollup'> | undefined,
  usd: number | null | undefined,
): string {
  if (!rollup) return unknown;
  const isKnown = typeof usd === 'number' || (rollup.unpriced_models ?? []).length === 0;
  return isKnown ? dollars(usd ?? 0) : 'no price';
}
