import type { IncomingHttpHeaders } from 'node:http';
import { queueCodes } from '@millrace/contract/queue';
import { openApiDocument } from '@millrace/contract/documents';
import { bindOperations, type BoundApp, type DocumentSchemas } from '@millrace/kit/http';
import type { Metrics } from '@millrace/kit/metrics';
import type { TokenSet } from '@millrace/kit/tokens';
import { anonymous, type Principal, type Role } from '../operations/principal.js';
import { fail } from '../operations/refusal.js';
import { StorageUnavailable } from '../storage/task-store.js';
import { accessLogOf, type AccessLog } from './access-log.js';
import { authenticate, authorize } from './access.js';
import type { QueueContext } from './context.js';
import { queueHandlers, type QueueHandlers, type Served } from './handlers.js';
import type { Load, Urgency } from './limits/load.js';

export interface QueueAppOptions {
  context: QueueContext;
  schemas: DocumentSchemas;
  tokens: { readonly current: TokenSet<Role> };
  load: Load;
  metrics: Metrics;
  accessLog: AccessLog;
  /** Hears of every answer that the contract does not describe. For tests. */
  onUndocumentedAnswer?: ((difference: string) => void) | undefined;
}

/** The HTTP face of the queue: the contract's operations, who may call them, and how many. */
export function queueApp(options: QueueAppOptions): BoundApp {
  const { context, schemas, tokens, load, metrics, accessLog, onUndocumentedAnswer } = options;
  const { clock, random, log } = context;
  const app = bindOperations<Served, Principal>({
    world: { clock, random, log: accessLogOf(log, accessLog) },
    document: openApiDocument('queue'),
    schemas,
    codes: queueCodes,
    metrics,
    handlers: guarded(queueHandlers(context)),
    anonymous,
    principalName: ({ principal }) => principal,
    protectedPrefixes: ['/v1'],
    invalidQueryCode: 'INVALID_QUERY',
    quietOperations: ['getLiveness', 'getReadiness'],
    readyOperations: ['submitTask', 'submitBatch'],
    authenticate: ({ headers }) => authenticate(headers.authorization, tokens.current, clock),
    authorize: (caller, operation, params) => {
      authorize(caller, operation, params);
      // Here, since a body that is not going to be served need not be read.
      load.admit(urgencies[operation.id] ?? 'upkeep');
    },
    ...(onUndocumentedAnswer && { onUndocumentedAnswer }),
  });
  countRequests(app, load);
  return app;
}

/** Whoever has a token counts from the first byte of the request to the last of its answer. */
function countRequests({ fastify }: BoundApp, load: Load): void {
  fastify.addHook('onRequest', ({ headers }, reply, done) => {
    const bytes = announcedBytes(headers);
    load.enter(bytes);
    reply.raw.on('close', () => load.leave(bytes));
    done();
  });
}

function announcedBytes(headers: IncomingHttpHeaders): number {
  const length = headers['content-length'];
  if (length !== undefined) return Math.min(Number(length), largestBody);
  return headers['transfer-encoding'] === undefined ? 0 : largestBody;
}

const largestBody = 16 * 2 ** 20;

const urgencies: Readonly<Partial<Record<string, Urgency>>> = {
  submitTask: 'new_work',
  submitBatch: 'new_work',
  getTask: 'new_work',
  getStats: 'new_work',
};

const retryAfterMs = 5_000;

/** The handlers, telling a store that is away from a bug. */
function guarded(handlers: QueueHandlers): QueueHandlers {
  const entries = Object.entries(handlers).map(([id, entry]) => {
    const handle = (typeof entry === 'function' ? entry : entry.handle) as (
      call: never,
    ) => Promise<unknown>;
    const guard = async (call: never) => {
      try {
        return await handle(call);
      } catch (error) {
        throw error instanceof StorageUnavailable ? storageUnavailable(error) : error;
      }
    };
    return [id, typeof entry === 'function' ? guard : { ...entry, handle: guard }];
  });
  return Object.fromEntries(entries) as QueueHandlers;
}

function storageUnavailable(cause: StorageUnavailable): Error {
  const detail = 'The task store does not answer; a submit may be sent again with the same id.';
  return fail('STORAGE_UNAVAILABLE', detail, { retryAfterMs, cause });
}
