import { ApiError } from '@millrace/client';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
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

/** A placeholder that prevents layout shifts while data loads. */
export function Loading({ rows = 4, label = 'Loading' }: { rows?: number; label?: string }) {
  return (
    <div className="loading" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} className="loading-row" />
      ))}
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
      {onRetry && (
        <button type="button" onClick={() => void onRetry()}>
          Retry
        </button>
      )}
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
