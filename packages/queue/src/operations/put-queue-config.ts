import type { QueueSchema } from '@millrace/contract/queue';
import type { Queue, QueueConfig } from '../core/queue.js';
import type { QueueContext } from './base/context.js';
import { configFaults, isGrpcUrl } from './config-rules.js';
import { readPrecondition, requirePrecondition } from './base/precondition.js';
import type { Principal } from './base/principal.js';
import { toWireConfig, type WireConfig } from './queue-config.js';
import { readOnlyFaults } from './base/read-only.js';
import { fail, failBody } from './base/refusal.js';

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
  const {
    name: ownName,
    paused,
    version,
    created_at,
    updated_at,
    ...rest
  } = checks.config.read(body);
  const config = rest as QueueConfig;
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
    config,
    paused: current?.paused ?? false,
    version: (current?.version ?? 0) + 1,
    incarnation: current?.incarnation ?? '',
    createdAt: current?.createdAt ?? now,
    updatedAt: now,
  };
}
