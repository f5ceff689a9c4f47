import type { QueueSchema } from '@millrace/contract/queue';
import { Refusal, type FieldError } from '@millrace/kit/errors';
import { signingKeyOf } from '@millrace/kit/webhooks';
import type { Queue, QueueConfig, SecretLookup } from '../core/queue.js';
import { configInUse, configToStore } from '../storage/port/store-parts.js';
import { readOnlyFaults, readPrecondition, requirePrecondition, timeText } from './base/bodies.js';
import {
  type Principal,
  type QueueContext,
  queueNotFound,
  requireGrant,
  requireQueue,
} from './base/context.js';
import { fail, failBody } from './base/refusal.js';
import { queueStats } from './stats.js';

export interface PutQueueConfigRequest {
  queue: string;
  body: unknown;
  ifMatch?: string | undefined;
  validateOnly?: boolean | undefined;
}

type Input = QueueSchema<'QueueConfigInput'>;
type ReadOnly = Pick<Input, 'name' | 'paused' | 'version' | 'created_at' | 'updated_at'>;

const maxTries = 8;

/** Creates a queue or replaces its whole config. Policies apply from the next claim on. */
export async function putQueueConfig(
  context: QueueContext,
  caller: Principal,
  { queue: name, body, ifMatch, validateOnly = false }: PutQueueConfigRequest,
): Promise<WireConfig> {
  const { store, clock, delivery } = context;
  const { config, readOnly } = readConfig(context, name, body);
  const precondition = readPrecondition(ifMatch);
  for (let tries = 0; tries < maxTries; tries++) {
    const current = await store.getQueue(name);
    // Before the read-only fields are compared: a config that was read, edited and sent
    // back with an outdated ETag has the old version too, and must fail as a version conflict.
    requirePrecondition(precondition, current);
    const now = clock.now();
    const dependsOnCurrent = precondition !== 'none' || Object.keys(readOnly).length > 0;
    checkReadOnly(readOnly, current ?? newQueueFields(name));
    if (validateOnly) return toWireConfig(asWritten(name, config, current, now));
    const written = await store.putQueue({
      queue: name,
      config,
      ...(dependsOnCurrent && { ifVersion: current?.version ?? 0 }),
      now,
      by: caller.principal,
    });
    if (written.kind === 'written') {
      delivery.queueChanged(name);
      return toWireConfig(written.queue);
    }
  }
  throw fail('PRECONDITION_FAILED', 'The config keeps changing; read it again and try once more.');
}

function readConfig(
  { checks, findSecret, secretsFault, allowlist }: QueueContext,
  name: string,
  body: unknown,
): { config: QueueConfig; readOnly: ReadOnly } {
  const hasBreaker = (body as Input | null)?.circuit_breaker !== undefined;
  const {
    name: ownName,
    paused,
    version,
    created_at,
    updated_at,
    ...rest
  } = checks.config.read(body);
  const config = configToStore(rest as QueueConfig, hasBreaker);
  // The schema does not fill in defaults inside `oneOf`.
  if (config.callback.signing) config.callback.signing.scheme ??= 'standard_webhooks';
  const faults = configFaults(config, name, { findSecret, fileFault: secretsFault() });
  if (faults.length > 0) throw failBody('INVALID_CONFIG', faults);
  requireAllowed(allowlist, config.callback);
  const readOnly = { name: ownName, paused, version, created_at, updated_at };
  const given = Object.entries(readOnly).filter(([, value]) => value !== undefined);
  return { config, readOnly: Object.fromEntries(given) };
}

function requireAllowed(
  allowlist: QueueContext['allowlist'],
  { url, protocol }: QueueConfig['callback'],
): void {
  if (url === undefined) return;
  const match =
    protocol === 'http' && isGrpcUrl(url)
      ? { allowed: false, reason: 'Set callback.protocol to grpc to call a gRPC URL' }
      : allowlist.match(url);
  if (match.allowed) return;
  const detail = `${match.reason}. The server's config lists what is allowed: callback_allowlist.`;
  const errors = [{ pointer: '/callback/url', message: 'is not allowed' }];
  throw fail('CALLBACK_URL_NOT_ALLOWED', detail, { errors });
}

/** The read-only fields of a queue that does not exist yet. */
function newQueueFields(name: string): Pick<WireConfig, 'name' | 'paused'> {
  return { name, paused: false };
}

function checkReadOnly(given: ReadOnly, current: Queue | Pick<WireConfig, 'name' | 'paused'>) {
  const values = 'config' in current ? toWireConfig(current) : current;
  const faults = readOnlyFaults(given, { ...values }, 'queue');
  if (faults.length > 0) throw failBody('INVALID_CONFIG', faults);
}

/** The queue as it would be after the write. */
function asWritten(
  name: string,
  config: QueueConfig,
  current: Queue | undefined,
  now: number,
): Queue {
  return {
    name,
    config: configInUse(config),
    paused: current?.paused ?? false,
    version: (current?.version ?? 0) + 1,
    incarnation: current?.incarnation ?? '',
    createdAt: current?.createdAt ?? now,
    updatedAt: now,
  };
}

/** The stored config with every default filled in. */
export async function getQueueConfig(
  context: QueueContext,
  { queue }: { queue: string },
): Promise<WireConfig> {
  return toWireConfig(await requireQueue(context, queue));
}

export type WireConfig = QueueSchema<'QueueConfig'>;

/** A queue as the API shows it. */
export function toWireConfig(queue: Queue): WireConfig {
  const { name, paused, version, createdAt, updatedAt, config } = queue;
  return {
    name,
    paused,
    version,
    created_at: timeText(createdAt),
    updated_at: timeText(updatedAt),
    ...config,
    // Absent in configs of older versions.
    limits: {
      ...config.limits,
      max_in_flight_per_group: config.limits.max_in_flight_per_group ?? 0,
    },
    callback: { ...config.callback, keep_result: config.callback.keep_result ?? false },
  };
}

/** Checks the rules of a config that its schema cannot express. */
export function configFaults(
  config: QueueConfig,
  queue: string,
  secrets: SecretsInUse,
): FieldError[] {
  return [
    ...descriptionFaults(config),
    ...urlFaults(config),
    ...statusFaults(config),
    ...authFaults(config, queue, secrets),
    ...signingFaults(config, queue, secrets),
  ];
}

export interface SecretsInUse {
  findSecret: SecretLookup;
  /** Why the newest secrets file is not in use; undefined if it is. */
  fileFault: string | undefined;
}

function descriptionFaults({ description }: QueueConfig): FieldError[] {
  if (description.isWellFormed()) return [];
  return [{ pointer: '/description', message: 'has half of a surrogate pair' }];
}

export function isGrpcUrl(url: string): boolean {
  return /^grpcs?:/i.test(url);
}

function urlFaults({ callback: { protocol, url } }: QueueConfig): FieldError[] {
  if (protocol !== 'grpc' || url === undefined || isGrpcUrl(url)) return [];
  const message = 'must be grpc://host:port or grpcs://host:port with the protocol grpc';
  return [{ pointer: '/callback/url', message }];
}

function statusFaults({ retry }: QueueConfig): FieldError[] {
  const retried = new Set(retry.retry_statuses);
  return retry.dead_statuses.flatMap((status, index) =>
    retried.has(status)
      ? [
          {
            pointer: `/retry/dead_statuses/${index}`,
            message: `is in retry_statuses too: ${status} can be in one of them only`,
          },
        ]
      : [],
  );
}

// Headers that the connection or the server sets: a second value would be ignored or conflict.
const ownHeaders =
  /^(?:connection|proxy-.*|keep-alive|te|trailer|transfer-encoding|upgrade|expect|host|content-.*|webhook-.*|x-queue-.*|traceparent)$/i;

const grpcNames = /^(?:grpc-.*|user-agent|.*-bin)$/i;

function authFaults({ callback }: QueueConfig, queue: string, secrets: SecretsInUse): FieldError[] {
  const { auth } = callback;
  if (auth.type === 'none') return [];
  const faults: FieldError[] = [];
  if (auth.type === 'header' && ownHeaders.test(auth.name)) {
    const message = 'is a header that the server sets itself; choose another';
    faults.push({ pointer: '/callback/auth/name', message });
  }
  if (callback.protocol === 'grpc' && auth.type === 'header' && grpcNames.test(auth.name)) {
    const message = 'is metadata that gRPC sets itself, or binary; choose another';
    faults.push({ pointer: '/callback/auth/name', message });
  }
  const pointer = '/callback/auth/secret_ref';
  const secret = secrets.findSecret(auth.secret_ref, queue);
  if (secret === undefined) faults.push({ pointer, message: notOpen(queue, secrets) });
  else if (auth.type === 'basic' && !secret.includes(':')) {
    faults.push({ pointer, message: 'names a secret that is not of the form user:password' });
  }
  return faults;
}

function signingFaults(
  { callback }: QueueConfig,
  queue: string,
  secrets: SecretsInUse,
): FieldError[] {
  const refs = callback.signing?.secret_refs ?? [];
  return refs.flatMap((ref, index) => {
    const pointer = `/callback/signing/secret_refs/${index}`;
    const secret = secrets.findSecret(ref, queue);
    if (secret === undefined) return [{ pointer, message: notOpen(queue, secrets) }];
    if (signingKeyOf(secret)) return [];
    return [{ pointer, message: 'names a secret that is not "whsec_" followed by base64' }];
  });
}

/** The same message as for a missing secret: a queue's admin must not learn which secrets exist. */
function notOpen(queue: string, { fileFault }: SecretsInUse): string {
  const fault = fileFault === undefined ? '' : `; its newest version is not in use: ${fileFault}`;
  return `names no secret of the server's secrets file that is open to ${queue}${fault}`;
}

/** Deletes a queue that has nothing left to do. */
export async function deleteQueue(
  { store, clock, delivery }: QueueContext,
  caller: Principal,
  { queue }: { queue: string },
): Promise<void> {
  const outcome = await store.deleteQueue({ queue, now: clock.now(), by: caller.principal });
  if (outcome === 'not_found') throw queueNotFound(queue);
  if (outcome === 'not_empty') {
    throw fail(
      'QUEUE_NOT_EMPTY',
      `The queue ${queue} has pending, running or dead tasks; let them finish or purge them first.`,
    );
  }
  delivery.queueDeleted(queue);
}

/** The queues on which the caller is admin, by name. */
export async function listQueues(
  context: QueueContext,
  caller: Principal,
): Promise<QueueSchema<'QueueList'>> {
  const { store, delivery } = context;
  const queues = await store.listQueues();
  const granted = queues
    .filter(({ name }) => caller.grants.allows(name, 'admin'))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const list: QueueSchema<'QueueList'> = [];
  for (const queue of granted) {
    const { name, paused, config, version, updatedAt } = queue;
    list.push({
      name,
      summary: {
        paused,
        ...(await queueStats(context, queue)),
        callback_url: config.callback.url ?? null,
        breaker: (await delivery.breakersOf(name)).phase,
        version,
        updated_at: timeText(updatedAt),
      },
    });
  }
  return list;
}

/** Stops or starts the claiming of a queue's tasks. Running ones finish. */
export async function setQueuePaused(
  { store, clock, delivery }: QueueContext,
  caller: Principal,
  { queue }: { queue: string },
  paused: boolean,
): Promise<void> {
  const now = clock.now();
  const isThere = await store.setPaused({ queue, paused, now, by: caller.principal });
  if (!isThere) throw queueNotFound(queue);
  delivery.queueChanged(queue);
}

/**
 * A backup of all queues, or what was committed since another one. Needs the role admin on all of
 * them.
 */
export async function backupQueues(
  { store }: QueueContext,
  caller: Principal,
  sinceSeq: number | undefined,
): Promise<AsyncIterable<Uint8Array>> {
  requireGrant(caller, '*', 'admin');
  if (!store.backup) {
    throw fail(
      'BACKUP_UNAVAILABLE',
      'The tasks are in PostgreSQL. Back up that database with its own tools, such as pg_dump.',
    );
  }
  return store.backup(sinceSeq).catch((error: unknown) => {
    throw error instanceof Refusal ? fail('BACKUP_UNAVAILABLE', error.detail) : error;
  });
}
