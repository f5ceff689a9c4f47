import { type QueueCode, queueCodes } from '@millrace/contract/queue';
import { failWith, type FieldError, type Refusal } from '@millrace/kit/errors';

/** A refusal with one of the queue's error codes. */
export const fail = failWith(queueCodes);

/** Refuses an invalid body: the first fault in the detail, all faults as pointers. */
export function failBody(
  code:
    | 'INVALID_TASK'
    | 'INVALID_FLOW'
    | 'INVALID_SELECTOR'
    | 'INVALID_CLAIM'
    | 'INVALID_CONFIG'
    | 'INVALID_SCHEDULE',
  errors: readonly FieldError[],
): Refusal {
  const [first] = errors;
  if (!first) return fail(code, 'The body is not valid.');
  const where = first.pointer === '' ? 'The body' : first.pointer;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  const end = first.message.endsWith('?') && more === '' ? '' : '.';
  return fail(code, `${where} ${first.message}${more}${end}`, { errors });
}

export interface HitLimit {
  /** Name of the limit in the RateLimit header. */
  name: 'queue' | 'principal' | 'pending' | 'claims' | 'load';
  detail: string;
  retryAfterMs: number;
  /** Quota and window in seconds; load has no quota, `max_pending` no window. */
  quota?: number;
  windowSeconds?: number;
}

/** 429 with the headers that say when to retry. */
export function rateLimited(limit: HitLimit): Refusal {
  const seconds = Math.max(1, Math.ceil(limit.retryAfterMs / 1000));
  const window = limit.windowSeconds === undefined ? '' : `;w=${limit.windowSeconds}`;
  return fail('RATE_LIMITED', limit.detail, {
    retryAfterMs: limit.retryAfterMs,
    headers: {
      ratelimit: `"${limit.name}";r=0;t=${seconds}`,
      ...(limit.quota !== undefined && {
        'ratelimit-policy': `"${limit.name}";q=${limit.quota}${window}`,
      }),
    },
  });
}

/** The same for a limit per second. */
export function rateExceeded(
  name: 'queue' | 'principal',
  detail: string,
  { perSecond, waitMs }: { perSecond: number; waitMs: number },
): Refusal {
  const isSlow = perSecond < 1;
  return rateLimited({
    name,
    detail,
    retryAfterMs: waitMs,
    quota: isSlow ? 1 : Math.floor(perSecond),
    windowSeconds: isSlow ? Math.ceil(1 / perSecond) : 1,
  });
}

/** Refuses a query parameter that matches its schema but is not usable. */
export function failQuery(errors: readonly FieldError[]): Refusal {
  const [first] = errors;
  const detail = `The query parameter "${first!.pointer.slice(1)}" ${first!.message}.`;
  return fail('INVALID_QUERY', detail, { errors });
}

/** A refusal as the REST API has it. */
export function problemOf(refusal: Refusal) {
  const code = refusal.code as QueueCode;
  const { status, title } = queueCodes[code];
  const { errors, members } = refusal.extra;
  // Members such as the reason of a lost lease.
  const more = { ...members, ...(errors && { errors: [...errors] }) };
  return { code, status, title, detail: refusal.detail, ...more };
}
