import { queueCodes } from '@millrace/contract/queue';
import { failWith, type FieldError, type Refusal } from '@millrace/kit/errors';

/** A refusal with a code of the queue's own list. */
export const fail = failWith(queueCodes);

/** Refuses a body for what is in it: the first fault in words, all of them as pointers. */
export function failBody(
  code: 'INVALID_TASK' | 'INVALID_SELECTOR' | 'INVALID_CONFIG',
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
  /** As the RateLimit header names it. */
  name: 'queue' | 'principal' | 'pending' | 'load';
  detail: string;
  retryAfterMs: number;
  /** What is allowed, and in how many seconds; load has no quota, a stock no window. */
  quota?: number;
  windowSeconds?: number;
}

/** 429 with what the caller needs to come back at the right time. */
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

/** The same for a limit of so many a second. */
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

/** Refuses a query for a value that fits its schema and cannot be used all the same. */
export function failQuery(errors: readonly FieldError[]): Refusal {
  const [first] = errors;
  const detail = `The query parameter "${first!.pointer.slice(1)}" ${first!.message}.`;
  return fail('INVALID_QUERY', detail, { errors });
}
