import type { Log } from '@millrace/kit/log';

export type AccessLog = 'all' | 'failures' | 'off';

/** The access log: filters the HTTP layer's line per request by the setting. */
export function accessLogOf(log: Log, mode: AccessLog): Log {
  if (mode === 'all') return log;
  const isWanted = (status: number) => mode === 'failures' && isFailure(status);
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => {
      const { status } = fields as { status?: number };
      if (message !== 'request' || isWanted(status ?? 0)) log.info(fields, message);
    },
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
    child: (fields) => accessLogOf(log.child(fields), mode),
  };
}

/** What an operator should see by default; 404 is not a failure. */
function isFailure(status: number): boolean {
  return status === 401 || status === 403 || status === 499 || status >= 500;
}
