import { isUtf8 } from 'node:buffer';
import { hostname } from 'node:os';
import type { DaemonOperations } from '@millrace/contract/daemon';
import { messageOf, type FieldError } from '@millrace/kit/errors';
import { wellFormed, type Check } from '@millrace/kit/http';
import { isSignedBy } from '@millrace/kit/webhooks';
import type { Database } from '@millrace/engine';
import { fail } from '../core/api.js';
import type { SpawnRequest } from '../sessions/port.js';
import type { Report } from './report.js';

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
  /** From 1. */
  attempt: number;
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
  const count = isCounted ? Math.max(1, Number(attempt)) : 1;
  return { id, queue, attempt: count, leaseToken, attemptKey, request: forTask(request, id) };
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
  const text = Buffer.from(body ?? []).toString('utf8');
  if (text.trim() === '') throw invalidBody('is empty: send a prompt or a SpawnRequest');
  if (!isUtf8(body!)) throw invalidBody('is not UTF-8 text');
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

export type Labels = Readonly<Record<string, string>>;

const systemNames: Readonly<Record<string, string>> = { darwin: 'macos', win32: 'windows' };

/** Labels that every daemon sets for its machine; settings override them. */
export function machineLabels(configured: Labels): Labels {
  const os = systemNames[process.platform] ?? process.platform;
  return { os, arch: process.arch, host: hostname(), ...configured };
}

const handler = 'agent';
const handlerValue = /^[A-Za-z0-9._/@-]+$/;

/**
 * The handlers of the tasks that a daemon claims: `agent` for any machine, `agent.gpu` for machines
 * with the label gpu, `agent.gpu:true` for those where it has this value.
 */
export function handlersOf(labels: Labels): string[] {
  const own = Object.entries(labels).flatMap(([key, value]) => [
    `${handler}.${key}`,
    ...(handlerValue.test(value) ? [`${handler}.${key}:${value}`] : []),
  ]);
  return [handler, ...own];
}

/** The task header that lists required labels: `os=linux,gpu=true`. */
export const labelsHeader = 'x-agent-labels';

/** The required labels; undefined when the text is not a list of `key=value`. */
export function parseLabels(text: string): Labels | undefined {
  const pairs = text.split(',').flatMap((part) => part.trim() || []);
  const entries = pairs.map((pair): [string, string] | undefined => {
    const at = pair.indexOf('=');
    return at > 0 ? [pair.slice(0, at).trim(), pair.slice(at + 1).trim()] : undefined;
  });
  if (entries.includes(undefined)) return undefined;
  return Object.fromEntries(entries as [string, string][]);
}

/** The required labels that a machine does not have, as text; empty when it has all. */
export function missingLabels(required: Labels, own: Labels): string {
  return Object.entries(required)
    .filter(([key, value]) => own[key] !== value)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ');
}

const toleranceMs = 5 * 60_000;

/** Raw headers of the Standard Webhooks scheme. */
export interface Signing {
  id: string | undefined;
  timestamp: string | undefined;
  signature: string | undefined;
}

/**
 * Verifies signature and timestamp over the raw bytes, before they are parsed.
 */
export function checkSignature(
  { id, timestamp, signature }: Signing,
  body: Uint8Array,
  { key, now }: { key: Uint8Array; now: number },
): void {
  if (!id || !timestamp || !signature) {
    throw bad(
      'webhook-id, webhook-timestamp and webhook-signature are required. Configure the queue to sign.',
    );
  }
  if (!/^\d{1,12}$/.test(timestamp)) throw bad('webhook-timestamp must be Unix seconds.');
  if (Math.abs(now - Number(timestamp) * 1000) > toleranceMs) {
    throw bad('webhook-timestamp is more than 5 minutes off. Synchronize both clocks.');
  }
  const signed = { id, timestampSeconds: Number(timestamp), body };
  if (!isSignedBy(key, signed, signature)) {
    throw bad(
      'No signature matches. queue.callback_secret must be the signing secret of the queue.',
    );
  }
}

function bad(detail: string): Error {
  return fail('BAD_SIGNATURE', detail);
}

/** A task of the queue, its session, and the pending report. */
export interface QueueTask {
  key: string;
  task_id: string;
  queue: string;
  lease_token: string;
  /** Null while the session is being spawned. */
  session_id: string | null;
  /** `settled`: reported. `lost`: the lease is no longer ours. `given_up`: the report failed. */
  state: 'spawning' | 'working' | 'reporting' | 'settled' | 'lost' | 'given_up';
  report: Report | null;
  /** When the report was created. */
  reported_at: number;
  tries: number;
  received_at: number;
}

const collection = 'queue_tasks';

/** Ended tasks stay for a day, in case the same attempt is delivered again. */
const retentionMs = 24 * 3_600_000;

/** The tasks on disk. The event stream does not show this collection. */
export class TaskStore {
  constructor(private readonly database: Database) {}

  async find(key: string): Promise<QueueTask | undefined> {
    return (await this.#collection().findByKey(key))?.data;
  }

  async put(task: QueueTask): Promise<void> {
    await this.#collection().upsert(task.key, task);
  }

  async remove(key: string): Promise<void> {
    await this.database.transact((target) => target.collection(collection).delete(key));
  }

  /** Updates the stored task; undefined when there is none. */
  change(key: string, change: (task: QueueTask) => QueueTask): Promise<QueueTask | undefined> {
    return this.database.transact((target) => {
      const tasks = target.collection<QueueTask>(collection);
      const before = tasks.get(key);
      if (!before) return undefined;
      const task = change(before);
      tasks.put(key, task, { ttlMs: isOver(task) ? retentionMs : 0 });
      return task;
    });
  }

  /** Tasks that have not ended. */
  async open(): Promise<QueueTask[]> {
    const found: QueueTask[] = [];
    for await (const { data } of this.#collection().stream()) {
      if (!isOver(data)) found.push(data);
    }
    return found;
  }

  #collection() {
    return this.database.collection<QueueTask>(collection);
  }
}

export function isOver({ state }: QueueTask): boolean {
  return state === 'settled' || state === 'lost' || state === 'given_up';
}

/** The attempt was deferred, so it is delivered again later. */
export function isDeferred({ report }: QueueTask): boolean {
  return report?.kind === 'fail' && report.defer === true;
}
