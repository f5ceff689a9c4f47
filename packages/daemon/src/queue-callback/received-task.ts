import { isUtf8 } from 'node:buffer';
import type { DaemonOperations } from '@millrace/contract/daemon';
import { messageOf, type FieldError } from '@millrace/kit/errors';
import { wellFormed, type Check } from '@millrace/kit/http';
import { fail } from '../core/refusals.js';
import type { SpawnRequest } from '../sessions/port.js';

export type CallbackHeaders = NonNullable<
  DaemonOperations['receiveQueueTask']['parameters']['header']
>;

/** One delivery of a task. */
export interface Delivery {
  headers: CallbackHeaders;
  contentType: string | undefined;
  /** Raw bytes; undefined when empty. */
  body: Uint8Array | undefined;
}

/** A verified delivery. */
export interface ReceivedTask {
  id: string;
  queue: string;
  leaseToken: string;
  /** The same for every delivery of one attempt, regardless of its lease. */
  attemptKey: string;
  request: SpawnRequest;
}

const maxPromptLength = 262_144;
const maxIdLength = 64;
const maxLeaseTokenLength = 256;
const maxTags = 32;

/** Parses a delivery with a valid signature. `spawnCheck` is the schema of a SpawnRequest. */
export function readTask(
  { headers, contentType, body }: Delivery,
  spawnCheck: Check,
): ReceivedTask {
  const id = need(headers, 'X-Queue-Task-Id');
  const queue = need(headers, 'X-Queue-Name');
  const leaseToken = need(headers, 'X-Queue-Lease-Token');
  if (id !== headers['webhook-id']) {
    throw invalid([{ pointer: '/X-Queue-Task-Id', message: 'must equal webhook-id' }]);
  }
  if (id.length > maxIdLength) {
    throw invalid([
      { pointer: '/X-Queue-Task-Id', message: `has at most ${maxIdLength} characters` },
    ]);
  }
  if (leaseToken.length > maxLeaseTokenLength) {
    const message = `has at most ${maxLeaseTokenLength} characters`;
    throw invalid([{ pointer: '/X-Queue-Lease-Token', message }]);
  }
  const { 'X-Queue-Attempt': attempt = '', 'X-Queue-Redrive-Count': redrive = '0' } = headers;
  const isCounted = /^\d{1,9}$/.test(attempt) && /^\d{1,9}$/.test(redrive);
  // An interrupted attempt is delivered again with a new lease.
  const attemptKey = `${id}:${isCounted ? `${redrive}:${attempt}` : leaseToken}`;
  const request = requestIn(contentType, body, spawnCheck);
  return { id, queue, leaseToken, attemptKey, request: forTask(request, id) };
}

/** The tag of the sessions that work on a task. */
export function tagOf(taskId: string): string {
  return `queue-task:${taskId}`;
}

/**
 * Headless by default, so that it ends by itself, and tagged with the task. Only the queue
 * retries: an automatic restart would run in parallel with the next attempt.
 */
function forTask(request: SpawnRequest, id: string): SpawnRequest {
  const { tags = [] } = request;
  const named = tags.length < maxTags && !tags.includes(tagOf(id)) ? [...tags, tagOf(id)] : tags;
  const driver = request.driver ?? 'headless';
  return { ...request, driver, tags: named, auto_restart: false };
}

function requestIn(
  contentType: string | undefined,
  body: Uint8Array | undefined,
  spawnCheck: Check,
): SpawnRequest {
  if (!body || body.length === 0) throw invalidBody('is empty: send a prompt or a SpawnRequest');
  if (!isUtf8(body)) throw invalidBody('is not UTF-8 text');
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  if (contentType?.split(';')[0]!.trim().toLowerCase() !== 'application/json') {
    if (text.length <= maxPromptLength) return { prompt: text };
    throw invalidBody(`is a prompt of more than ${maxPromptLength} characters`);
  }
  let value: unknown;
  try {
    value = wellFormed<unknown>(JSON.parse(text));
  } catch (error) {
    throw invalidBody(`is not valid JSON: ${messageOf(error)}`);
  }
  if (!spawnCheck.accepts(value)) throw invalid(spawnCheck.faults(value));
  return value as SpawnRequest;
}

function need(headers: CallbackHeaders, name: keyof CallbackHeaders): string {
  const value = headers[name];
  if (value) return value;
  const isProbe = name === 'X-Queue-Lease-Token';
  const hint = isProbe ? ', which a probe does not have; the signature is right' : '';
  throw invalid([{ pointer: `/${name}`, message: `is missing${hint}` }]);
}

function invalidBody(message: string): Error {
  return invalid([{ pointer: '', message }]);
}

function invalid(errors: readonly FieldError[]): Error {
  const [first] = errors;
  const place = first?.pointer ? first.pointer.replace(/^\/(?=X-)/, '') : 'The payload';
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return fail('INVALID_REQUEST', `${place} ${first?.message ?? 'is not valid'}${more}.`, {
    errors,
  });
}
