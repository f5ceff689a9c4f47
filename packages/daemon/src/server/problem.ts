import type { Problem } from '@millrace/kit/http';

/**
 * Shapes a problem document as in the daemon's contract: without `instance` (X-Request-Id has it),
 * with `error` as a copy of `detail`, and with a code even for requests that could not be parsed.
 */
export function daemonProblem({ type, title, status, detail, code, ...rest }: Problem): object {
  const members = Object.entries(rest).filter(([name]) => name !== 'instance');
  return {
    type,
    title,
    status,
    detail,
    code: code ?? (status === 413 ? 'PAYLOAD_TOO_LARGE' : 'INVALID_REQUEST'),
    error: detail,
    ...Object.fromEntries(members),
  };
}
