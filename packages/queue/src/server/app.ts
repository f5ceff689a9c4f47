import type { TlsOptions } from 'node:tls';
import { queueCodes } from '@millrace/contract/queue';
import { openApiDocument } from '@millrace/contract/documents';
import { bindOperations, type BoundApp, type DocumentSchemas } from '@millrace/kit/http';
import type { Metrics } from '@millrace/kit/metrics';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { TokenSet } from '@millrace/kit/tokens';
import { anonymous, type Principal, type Role } from '../operations/base/principal.js';
import { fail } from '../operations/base/refusal.js';
import { StorageUnavailable } from '../storage/port/task-store.js';
import { accessLogOf, type AccessLog } from './access/access-log.js';
import { authenticate, authorize } from './access/access.js';
import type { QueueContext } from '../operations/base/context.js';
import type { Served } from './handler-types.js';
import { queueHandlers } from './handlers.js';
import type { Load, Urgency } from '../operations/base/load.js';

export interface QueueAppOptions {
  context: QueueContext;
  schemas: DocumentSchemas;
  tokens: { readonly current: TokenSet<Role> };
  load: Load;
  metrics: Metrics;
  accessLog: AccessLog;
  peerMemory?: PeerMemory;
  maxConnections?: number;
  tls?: TlsOptions | undefined;
  /** Called for every response that the contract does not describe. For tests. */
  onUndocumentedResponse?: ((difference: string) => void) | undefined;
}

/** The HTTP API: the operations of the contract with authentication and load shedding. */
export function queueApp(options: QueueAppOptions): BoundApp {
  const { context, schemas, tokens, load, metrics, accessLog, onUndocumentedResponse } = options;
  const { peerMemory, maxConnections, tls } = options;
  const { clock, random, log } = context;
  return bindOperations<Served, Principal>({
    world: { clock, random, log: accessLogOf(log, accessLog) },
    document: openApiDocument('queue'),
    schemas,
    codes: queueCodes,
    httpErrorCodes: { overloaded: 'RATE_LIMITED' },
    metrics,
    peerMemory,
    maxConnections,
    tls,
    handlers: queueHandlers(context, load),
    // An unavailable store is not a bug.
    translateError: (error) =>
      error instanceof StorageUnavailable ? storageUnavailable(error) : undefined,
    load,
    anonymous,
    principalName: ({ principal }) => principal,
    protectedPrefixes: ['/v1'],
    invalidQueryCode: 'INVALID_QUERY',
    quietOperations: ['getLiveness', 'getReadiness'],
    precompiledOperations: ['submitTask', 'submitBatch'],
    authenticate: ({ headers }) => authenticate(headers.authorization, tokens.current, clock),
    authorize: (caller, operation, params) => {
      authorize(caller, operation, params);
      // Checked here, so that the body of a shed request is not read.
      load.admit(urgencies[operation.id] ?? 'upkeep');
    },
    ...(onUndocumentedResponse && { onUndocumentedResponse }),
  });
}

const urgencies: Readonly<Partial<Record<string, Urgency>>> = {
  submitTask: 'new_work',
  submitBatch: 'new_work',
  getTask: 'new_work',
  getStats: 'new_work',
};

const retryAfterMs = 5_000;

function storageUnavailable(cause: StorageUnavailable): Error {
  const detail = 'The task store does not respond; retry, a submit with the same id.';
  return fail('STORAGE_UNAVAILABLE', detail, { retryAfterMs, cause });
}
