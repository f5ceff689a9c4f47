import { ApiError } from '@millrace/client';
import { useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { firstTrouble, serverTitles, stateText } from '../api/server-states.js';
import { useServers } from '../api/servers.js';
import { Button } from './controls.js';
import { InlineCode } from './inline-code.js';

/** An empty state with a hint what to do. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="state">
      <p className="state-title">{title}</p>
      {children && <div className="state-hint">{children}</div>}
    </div>
  );
}

const lateMs = 3_000;

/** A placeholder that prevents layout shifts while data loads; it ends in a message. */
export function Loading({ rows = 4, label = 'Loading' }: { rows?: number; label?: string }) {
  const [isLate, setIsLate] = useState(false);
  useEffect(() => {
    if (isLate) return;
    const timer = setTimeout(() => setIsLate(true), lateMs);
    return () => clearTimeout(timer);
  }, [isLate]);
  if (isLate) return <Late onRetry={() => setIsLate(false)} />;
  return (
    <div className="loading" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} className="loading-row" />
      ))}
    </div>
  );
}

/** Says that an answer is late, and who is to blame where that is known. */
function Late({ onRetry }: { onRetry: () => void }) {
  const client = useQueryClient();
  const servers = useServers();
  const trouble = firstTrouble(servers);
  const retry = async () => {
    onRetry();
    const isPending = ({ state }: { state: { data: unknown } }) => state.data === undefined;
    if (client.isFetching({ predicate: isPending }) === 0) return location.reload();
    await client.cancelQueries({ predicate: isPending });
    await client.refetchQueries({ type: 'active', predicate: isPending });
  };
  return (
    <div className="state state-failure" role="alert">
      <p className="state-title">
        {trouble
          ? `${serverTitles[trouble]}: ${stateText(servers[trouble])}.`
          : 'No answer for 3 seconds.'}
      </p>
      <div className="state-hint">
        {trouble === undefined
          ? 'The page keeps waiting. The server may be busy.'
          : 'The page keeps waiting. Check the process with: '}
        {trouble !== undefined && <code>ctl status</code>}
      </div>
      <Button onClick={() => void retry()}>Retry</Button>
    </div>
  );
}

/** An error with a hint what to do. */
export function Failure({
  error,
  onRetry,
}: {
  error: unknown;
  onRetry?: (() => unknown) | undefined;
}) {
  const { title, hint } = explain(error);
  return (
    <div className="state state-failure" role="alert">
      <p className="state-title">
        <InlineCode text={title} />
      </p>
      {hint && (
        <div className="state-hint">
          <InlineCode text={hint} />
        </div>
      )}
      {onRetry && <Button onClick={() => void onRetry()}>Retry</Button>}
    </div>
  );
}

/**
 * Renders the data of a query, or its loading or error state. Data stays on the page when a refetch
 * fails; the error is shown above it.
 */
export function Loaded<T>({
  query,
  rows,
  empty,
  children,
}: {
  query: UseQueryResult<T>;
  rows?: number;
  /** Instead of a list without rows. */
  empty?: ReactNode;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) {
    return (
      <>
        {query.isError && <Failure error={query.error} onRetry={query.refetch} />}
        {empty && Array.isArray(query.data) && query.data.length === 0
          ? empty
          : children(query.data)}
      </>
    );
  }
  if (query.isError) return <Failure error={query.error} onRetry={query.refetch} />;
  return <Loading {...(rows !== undefined && { rows })} />;
}

/** The message of an error, with a hint where there is one. */
export function explain(error: unknown): { title: string; hint: string | undefined } {
  if (!(error instanceof ApiError)) {
    return { title: 'The dashboard failed.', hint: String(error) };
  }
  return { title: error.message, hint: hints[error.code] };
}

const hints: Readonly<Record<string, string>> = {
  NOT_FOUND: 'The daemon may be older than the dashboard. Restart it.',
  FORBIDDEN: 'A read-only token cannot change anything. Log in with the full token.',
  SAVINGS_DISABLED: 'Set `savings: true` in the config file and restart the daemon.',
  FEATURE_DISABLED: 'Enable it in the config file and restart the daemon.',
  TOO_MANY_ATTEMPTS: 'Wait a minute, then try again.',
  INTERNAL: 'The log of the daemon (stderr) has the details.',
};
