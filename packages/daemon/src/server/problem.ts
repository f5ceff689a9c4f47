import type { Problem } from '@millrace/kit/http';

/**
 * A problem as the daemon's contract has it: without `instance`, which the header X-Request-Id
 * tells, with `error` beside `detail`, and with a code also where no request could be read.
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
