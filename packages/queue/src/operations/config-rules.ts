import type { FieldError } from '@millrace/kit/errors';
import { signingKeyOf } from '@millrace/kit/webhooks';
import type { QueueConfig, SecretLookup } from '../core/queue.js';

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
