import { ApiError } from '@millrace/client';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';

/** Nothing to show, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="state">
      <p className="state-title">{title}</p>
      {children && <div className="state-hint">{children}</div>}
    </div>
  );
}

/** Holds the place of what is on its way, so that nothing jumps when it comes. */
export function Loading({ rows = 4, label = 'Loading' }: { rows?: number; label?: string }) {
  return (
    <div className="loading" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} className="loading-row" />
      ))}
    </div>
  );
}

/** What went wrong and what to do. */
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
      <p className="state-title">{title}</p>
      {hint && <div className="state-hint">{hint}</div>}
      {onRetry && (
        <button type="button" onClick={() => void onRetry()}>
          Try again
        </button>
      )}
    </div>
  );
}

/**
 * A query's data, or the state it is in. Once there is data it stays on the page: a failed refresh
 * is told above it.
 */
export function Loaded<T>({
  query,
  rows,
  children,
}: {
  query: UseQueryResult<T>;
  rows?: number;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) {
    return (
      <>
        {query.isError && <Failure error={query.error} onRetry={query.refetch} />}
        {children(query.data)}
      </>
    );
  }
  if (query.isError) return <Failure error={query.error} onRetry={query.refetch} />;
  return <Loading {...(rows !== undefined && { rows })} />;
}

/** An error in words, with the next step where there is one. */
export function explain(error: unknown): { title: string; hint: string | undefined } {
  if (!(error instanceof ApiError)) {
    return { title: 'Something broke in the dashboard.', hint: String(error) };
  }
  return { title: error.message, hint: hints[error.code] };
}

const hints: Readonly<Record<string, string>> = {
  NOT_FOUND: 'This daemon may be older than the dashboard. Restart it to bring both up to date.',
  FORBIDDEN: 'A read-only token can look but not change anything. Use the full token in Settings.',
  SAVINGS_DISABLED: 'Set `savings: true` in the config file and restart the daemon.',
  FEATURE_DISABLED: 'Turn it on in the config file and restart the daemon.',
  TOO_MANY_ATTEMPTS: 'Wait a minute, then try again.',
  INTERNAL: "The daemon's log on stderr has the whole error.",
};
