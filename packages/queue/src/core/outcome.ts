import type { OutboundOutcome, OutboundResponse } from '@millrace/kit/outbound';
import type { RetryPolicy } from './backoff.js';
import { cutText, textExcerpt } from './excerpt.js';
import { retryAfterMs } from './retry-after.js';

/** The result of a callback, before the retry policy is applied. */
export interface Outcome {
  /** `async`: the handler reports later. `interrupted`: this server aborted the callback. */
  kind: 'succeeded' | 'async' | 'failed' | 'interrupted';
  httpStatus: number | null;
  errorType: string | null;
  message: string | null;
  /** False: the answer forbids another attempt. */
  mayRetry: boolean;
  /** The handler requests the same attempt later: this one does not count. */
  isDeferred: boolean;
  retryAfterMs: number | null;
  snippet: string | null;
  remoteIp: string | null;
  /** Health of the target, for the circuit breaker. */
  health: TargetHealth;
}

/** `bad`: down, overloaded or unreachable. `unknown`: the callback says nothing about it. */
export type TargetHealth = 'good' | 'bad' | 'unknown';

export const maxMessageBytes = 1024;
export const maxSnippetBytes = 2048;

const errorTypePattern = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;

export function outcomeOf(outcome: OutboundOutcome, policy: RetryPolicy, now: number): Outcome {
  if (outcome.ok) return outcomeOfAnswer(outcome, policy, now);
  if (outcome.errorType === 'ABORTED') return interrupted();
  return {
    kind: 'failed',
    httpStatus: null,
    errorType: outcome.errorType,
    message: cutText(outcome.message, maxMessageBytes),
    mayRetry: true,
    isDeferred: false,
    retryAfterMs: null,
    snippet: null,
    remoteIp: outcome.remoteIp ?? null,
    health: 'bad',
  };
}

/** The callback could not be sent, which says nothing about the target. */
export function unsent(message: string): Outcome {
  return {
    kind: 'failed',
    httpStatus: null,
    errorType: 'INTERNAL',
    message: cutText(message, maxMessageBytes),
    mayRetry: true,
    isDeferred: false,
    retryAfterMs: null,
    snippet: null,
    remoteIp: null,
    health: 'unknown',
  };
}

export function interrupted(): Outcome {
  return {
    kind: 'interrupted',
    httpStatus: null,
    errorType: null,
    message: 'The server shut down before the callback had answered',
    mayRetry: true,
    isDeferred: false,
    retryAfterMs: null,
    snippet: null,
    remoteIp: null,
    health: 'unknown',
  };
}

function outcomeOfAnswer(answer: OutboundResponse, policy: RetryPolicy, now: number): Outcome {
  const { status } = answer;
  const isSuccess = status >= 200 && status < 300;
  // A peer can send 1xx as a final status, or 600 and above, although HTTP forbids both.
  const isHttp = status >= 200 && status < 600;
  const isAsync = status === 202 && header(answer, 'x-queue-async')?.toLowerCase() === 'true';
  const isRetried = !isSuccess && mayRetry(answer, policy);
  const isDeferred = isRetried && header(answer, 'x-queue-defer')?.toLowerCase() === 'true';
  return {
    kind: isSuccess ? (isAsync ? 'async' : 'succeeded') : 'failed',
    httpStatus: isHttp ? status : null,
    errorType: isSuccess ? null : errorTypeOf(answer),
    message: isSuccess ? null : (namedMessage(answer) ?? messageOf(status, isHttp)),
    mayRetry: isSuccess || isRetried,
    isDeferred,
    retryAfterMs: isSuccess ? null : requestedDelayMs(answer, now),
    snippet: textExcerpt(answer.body, maxSnippetBytes),
    remoteIp: answer.remoteIp === '' ? null : answer.remoteIp,
    // A target that sends Retry-After is working.
    health: isBadForTarget(status) && !isDeferred ? 'bad' : 'good',
  };
}

function errorTypeOf(answer: OutboundResponse): string {
  const named = header(answer, 'x-queue-error-type');
  if (named !== undefined && errorTypePattern.test(named)) return named;
  const { status } = answer;
  if (status === 408) return 'TIMEOUT';
  if (status === 429) return 'RATE_LIMITED';
  if (status === 503) return 'UNAVAILABLE';
  if (status >= 300 && status < 400) return 'REDIRECT';
  if (status >= 400 && status < 500) return 'HTTP_4XX';
  return status >= 500 && status < 600 ? 'HTTP_5XX' : 'NETWORK_ERROR';
}

/** What the handler says, percent-encoded because header values are ASCII. */
function namedMessage(answer: OutboundResponse): string | undefined {
  const named = header(answer, 'x-queue-error-message');
  if (!named) return undefined;
  try {
    return cutText(decodeURIComponent(named), maxMessageBytes);
  } catch (error) {
    if (error instanceof URIError) return cutText(named, maxMessageBytes);
    throw error;
  }
}

function messageOf(status: number, isHttp: boolean): string {
  if (!isHttp) return `The callback answered with ${status}, which is no HTTP status`;
  const text = `The callback answered with HTTP ${status}`;
  return status < 400 ? `${text}; redirects are never followed` : text;
}

function mayRetry(answer: OutboundResponse, policy: RetryPolicy): boolean {
  const { status } = answer;
  if (header(answer, 'x-queue-retry')?.toLowerCase() === 'never') return false;
  if (policy.dead_statuses.includes(status)) return false;
  if (policy.retry_statuses.includes(status)) return true;
  if (status === 408 || status === 425 || status === 429) return true;
  return status < 400 || status >= 500;
}

function requestedDelayMs(answer: OutboundResponse, now: number): number | null {
  const value = header(answer, 'retry-after');
  return value === undefined ? null : (retryAfterMs(value, now) ?? null);
}

// A redirect or a 4xx concerns this task only: the target works.
function isBadForTarget(status: number): boolean {
  return status === 408 || status === 429 || status >= 500 || status < 200;
}

function header(answer: OutboundResponse, name: string): string | undefined {
  const value = answer.headers[name];
  return (Array.isArray(value) ? value[0] : value)?.trim();
}
