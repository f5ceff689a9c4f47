import { backoffMs as backoffDelayMs } from '@millrace/kit/backoff';
import type { OutboundOutcome, OutboundResponse } from '@millrace/kit/outbound';
import { traceOf } from './callback-headers.js';
import type { TaskFlow } from './flow.js';
import type { QueueConfig } from './queue.js';
import { maxResultBytes, type StoredResult } from './result.js';
import type {
  Attempt,
  AttemptOutcome,
  DeadReason,
  LastError,
  Lease,
  Task,
  TaskBackoff,
  TaskOptions,
} from './task.js';

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
  const { errorType, remoteIp = null } = outcome;
  const message = cutText(outcome.message, maxMessageBytes);
  return { ...unanswered, errorType, message, remoteIp, health: 'bad' };
}

/** Of a callback without an answer. */
const unanswered: Outcome = {
  kind: 'failed',
  httpStatus: null,
  errorType: 'INTERNAL',
  message: null,
  mayRetry: true,
  isDeferred: false,
  retryAfterMs: null,
  snippet: null,
  remoteIp: null,
  health: 'unknown',
};

/** The callback could not be sent, which says nothing about the target. */
export function unsent(message: string): Outcome {
  return { ...unanswered, message: cutText(message, maxMessageBytes) };
}

export function interrupted(): Outcome {
  const message = 'The server shut down before the callback had answered';
  return { ...unanswered, kind: 'interrupted', errorType: null, message };
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

/** The end of a call of `queue.v1.Handler/Execute`. */
export interface ExecuteAnswer {
  /** A gRPC status code: that of the call, or of its answer. */
  code: number;
  message: string;
  /** Delay that the handler asks for. */
  retryAfterMs: number | null;
  remoteIp: string | null;
}

interface StatusRule {
  name: string;
  mayRetry: boolean;
  /** Error type, if it is not the name. */
  errorType?: string;
  health: TargetHealth;
}

const retry = (name: string, health: TargetHealth, errorType?: string): StatusRule => ({
  name,
  mayRetry: true,
  health,
  ...(errorType !== undefined && { errorType }),
});
const dead = (name: string, health: TargetHealth = 'good'): StatusRule => ({
  name,
  mayRetry: false,
  health,
});

/** As the HTTP status with the same meaning is classified; by status code from 1. */
const rules: readonly StatusRule[] = [
  retry('CANCELLED', 'good'),
  retry('UNKNOWN', 'bad'),
  dead('INVALID_ARGUMENT'),
  retry('DEADLINE_EXCEEDED', 'bad', 'TIMEOUT'),
  dead('NOT_FOUND'),
  dead('ALREADY_EXISTS'),
  dead('PERMISSION_DENIED'),
  retry('RESOURCE_EXHAUSTED', 'bad', 'RATE_LIMITED'),
  dead('FAILED_PRECONDITION'),
  retry('ABORTED', 'good'),
  dead('OUT_OF_RANGE'),
  dead('UNIMPLEMENTED', 'bad'),
  retry('INTERNAL', 'bad'),
  retry('UNAVAILABLE', 'bad'),
  dead('DATA_LOSS', 'bad'),
  dead('UNAUTHENTICATED'),
];

export function executeOutcome(answer: ExecuteAnswer): Outcome {
  const { code, message, remoteIp } = answer;
  const common = { httpStatus: null, isDeferred: false, snippet: null, remoteIp };
  if (code === 0) {
    const good = { kind: 'succeeded', errorType: null, message: null, health: 'good' } as const;
    return { ...common, ...good, mayRetry: true, retryAfterMs: null };
  }
  const rule = rules[code - 1] ?? dead(`GRPC_${code}`);
  const text = `The handler answered with ${rule.name}`;
  const { retryAfterMs: wantedMs } = answer;
  return {
    ...common,
    kind: 'failed',
    errorType: rule.errorType ?? rule.name,
    message: cutText(message === '' ? text : `${text}: ${message}`, maxMessageBytes),
    mayRetry: rule.mayRetry,
    retryAfterMs: wantedMs === null ? null : Math.min(Math.max(0, wantedMs), maxRetryAfterMs),
    health: rule.health,
  };
}

/** The result in the answer of a handler: JSON of at most 64 KiB. */
export function executeResult(bytes: Uint8Array): StoredResult {
  if (bytes.length === 0) return {};
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    const result = JSON.stringify(JSON.parse(text));
    return Buffer.byteLength(result) > maxResultBytes ? { resultDropped: true } : { result };
  } catch {
    // Not JSON: as for a callback over HTTP, there is no result.
    return {};
  }
}

/** A task under the lease that is being settled. */
export type ClaimedTask = Task & { lease: Lease };

/** What the end of an attempt must know of its task. */
export type LeasedTask = Pick<
  ClaimedTask,
  'id' | 'queue' | 'attempt' | 'redriveCount' | 'headers' | 'lease' | 'options'
>;

export function isClaimed<T extends Task>(task: T): task is T & ClaimedTask {
  return task.lease !== null;
}

export interface AttemptEnd {
  outcome: AttemptOutcome;
  now: number;
  errorType?: string | null;
  message?: string | null;
  httpStatus?: number | null;
  retryAfterMs?: number | null;
  nextAttemptAt?: number | null;
  snippet?: string | null;
  /** URL without its query; null if nothing was sent. */
  url?: string | null;
  remoteIp?: string | null;
  /** Null: nothing was sent. Absent: derived from the task and its lease. */
  traceId?: string | null;
}

/** The entry in a task's history for the attempt that ends now. */
export function attemptRecord(task: LeasedTask, end: AttemptEnd): Attempt {
  const { startedAt, nodeId } = task.lease;
  // The clock may have been set back in between.
  const endedAt = Math.max(startedAt, end.now);
  return {
    attempt: task.attempt,
    redrive: task.redriveCount,
    startedAt,
    endedAt,
    durationMs: endedAt - startedAt,
    outcome: end.outcome,
    errorType: end.errorType ?? null,
    message: end.message ?? null,
    httpStatus: end.httpStatus ?? null,
    retryAfterMs: end.retryAfterMs ?? null,
    nextAttemptAt: end.nextAttemptAt ?? null,
    responseSnippet: end.snippet ?? null,
    url: end.url ?? null,
    remoteIp: end.remoteIp ?? null,
    nodeId,
    traceId:
      end.traceId === undefined ? traceOf(task.headers, task.lease.token).traceId : end.traceId,
  };
}

/** Summary of the failure; undefined if there was none. */
export function lastErrorOf(
  outcome: Pick<Outcome, 'errorType' | 'message' | 'httpStatus'>,
  now: number,
): LastError | undefined {
  if (outcome.errorType === null) return undefined;
  const { errorType, message, httpStatus } = outcome;
  return { errorType, message: message ?? '', httpStatus, at: now };
}

/** The callback URL for the history, without its query, which may carry keys; null: a pull queue. */
export function urlWithoutQuery(url: string | undefined): string | null {
  return url === undefined ? null : /^[^?#]*/.exec(url)![0];
}

/** How a claim ends. */
export type Verdict =
  | { kind: 'succeeded' }
  | { kind: 'retry'; dueAt: number }
  | { kind: 'dead'; reason: DeadReason }
  /** Returned to the queue: the attempt does not count. */
  | { kind: 'handed_back'; dueAt: number }
  /** Waits for a time, signals or other tasks: the attempt does not count. */
  | { kind: 'suspended'; dueAt: number; flow: TaskFlow };

export interface Failure {
  /** False: the handler forbids another attempt. */
  mayRetry: boolean;
  /** True: the handler could not start the work yet, so the attempt does not count. */
  isDeferred: boolean;
  /** Delay requested by the handler. */
  retryAfterMs: number | null;
  /** Delay that the handler chose instead of the backoff. */
  delayMs?: number | undefined;
}

export interface FailureContext {
  /** The number of the attempt that failed. */
  attempt: number;
  policy: RetryPolicy;
  /** Those of the task, which go before the policy. */
  options?: TaskOptions | undefined;
  now: number;
  /** From 0 up to 1. */
  chance: number;
}

/** Decides between retry, hand back and dead letter after a failed attempt. */
export function verdictOnFailure(failure: Failure, about: FailureContext): Verdict {
  const { attempt, policy, options, now, chance } = about;
  if (!failure.mayRetry) return { kind: 'dead', reason: 'PERMANENT' };
  if (!failure.isDeferred && attempt >= (options?.maxAttempts ?? policy.max_attempts)) {
    return { kind: 'dead', reason: 'ATTEMPTS_EXHAUSTED' };
  }
  const backoff = options?.backoff
    ? taskBackoffMs(options.backoff, policy, attempt, chance)
    : backoffMs(policy, attempt, chance);
  const requestedMs = Math.min(failure.retryAfterMs ?? 0, maxRetryAfterMs);
  const delayMs = failure.delayMs ?? Math.max(backoff, requestedMs);
  return { kind: failure.isDeferred ? 'handed_back' : 'retry', dueAt: now + delayMs };
}

/** An expired lease counts as a failed attempt, so that a poison task ends in the DLQ. */
export function verdictOnEndedLease(about: FailureContext): Verdict {
  return verdictOnFailure({ mayRetry: true, isDeferred: false, retryAfterMs: null }, about);
}

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const clockTime = '(?<h>\\d{2}):(?<m>\\d{2}):(?<s>\\d{2})';
const monthName = `(?<month>${months.join('|')})`;

// The three forms of RFC 9110 section 5.6.7.
const httpDates = [
  new RegExp(`^[A-Z][a-z]{2}, (?<day>\\d{2}) ${monthName} (?<year>\\d{4}) ${clockTime} GMT$`),
  new RegExp(`^[A-Z][a-z]{5,8}, (?<day>\\d{2})-${monthName}-(?<year>\\d{2}) ${clockTime} GMT$`),
  new RegExp(`^[A-Z][a-z]{2} ${monthName} (?<day>[ \\d]\\d) ${clockTime} (?<year>\\d{4})$`),
];

/**
 * Parses a `Retry-After` header (seconds or a date) to milliseconds from now, at most an hour.
 * Undefined: it cannot be parsed.
 */
export function retryAfterMs(value: string, now: number): number | undefined {
  const text = value.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, maxRetryAfterMs);
  const at = httpDateOf(text, now);
  if (at === undefined) return undefined;
  return Math.min(Math.max(0, at - now), maxRetryAfterMs);
}

function httpDateOf(text: string, now: number): number | undefined {
  for (const form of httpDates) {
    const parts = form.exec(text)?.groups;
    if (parts) return timeOf(parts, now);
  }
  return undefined;
}

function timeOf(parts: Record<string, string>, now: number): number | undefined {
  const number = (name: string) => Number(parts[name]);
  const [day, h, m, s] = [number('day'), number('h'), number('m'), number('s')] as const;
  const month = months.indexOf(parts['month']!);
  const year = fullYear(parts['year']!, now);
  if (h > 23 || m > 59 || s > 60) return undefined;
  // JavaScript accepts 31 February, which is not a date.
  const midnight = new Date(Date.UTC(year, month, day));
  if (midnight.getUTCMonth() !== month || midnight.getUTCDate() !== day) return undefined;
  return Date.UTC(year, month, day, h, m, s);
}

/** A two-digit year that would be more than 50 years ahead is in the past (RFC 9110). */
function fullYear(text: string, now: number): number {
  if (text.length === 4) return Number(text);
  const thisYear = new Date(now).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(text);
  return year > thisYear + 50 ? year - 100 : year;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The longest prefix of a text within a number of UTF-8 bytes, cut between characters. */
export function cutText(text: string, maxBytes: number): string {
  const clean = storable(text);
  // No code unit takes more than three bytes.
  if (clean.length * 3 <= maxBytes) return clean;
  const { read } = encoder.encodeInto(clean, new Uint8Array(maxBytes));
  return clean.slice(0, read);
}

/** The first bytes of a response body as text, whatever it contains. */
export function textExcerpt(bytes: Uint8Array, maxBytes: number): string {
  if (bytes.length === 0) return '';
  if (bytes.length <= maxBytes) return cutText(decoder.decode(bytes), maxBytes);
  // In streaming mode the decoder drops a character that the cut has split.
  const start = new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true });
  return cutText(start, maxBytes);
}

// Unpaired surrogates are not text, and some databases reject U+0000.
function storable(text: string): string {
  if (text.isWellFormed() && !text.includes('\0')) return text;
  return text.toWellFormed().replaceAll('\0', '\u{fffd}');
}

export type RetryPolicy = QueueConfig['retry'];

/** Upper limit for the delay that a handler requests. */
export const maxRetryAfterMs = 3_600_000;

/** Exponential backoff after the n-th failed attempt. `chance` is in [0, 1). */
export function backoffMs(policy: RetryPolicy, attempt: number, chance: number): number {
  const { initial_backoff_ms: initialMs, multiplier, max_backoff_ms: maxMs } = policy;
  return Math.round(backoffDelayMs({ initialMs, multiplier, maxMs }, attempt, chance));
}

/** The same for a task with a backoff of its own. */
function taskBackoffMs(
  { kind, ms, maxMs, jitter = 0 }: TaskBackoff,
  policy: RetryPolicy,
  attempt: number,
  chance: number,
): number {
  const grown = kind === 'fixed' ? ms : ms * 2 ** Math.max(0, attempt - 1);
  const full = Math.min(grown, maxMs ?? Math.max(policy.max_backoff_ms, ms));
  return Math.round(full - full * jitter * chance);
}
