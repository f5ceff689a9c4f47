import { systemClock, systemRandom } from '../../src/base/clock-and-random.js';
import { Refusal } from '../../src/base/errors.js';
import type { CodeTable } from '../../src/base/errors.js';
import { bindOperations, listen } from '../../src/http/index.js';
import type { BindOptions, BoundApp, Handlers, Listener } from '../../src/http/index.js';
import type { Log } from '../../src/base/log.js';
import { sampleDocument } from './sample-document.js';
import type { operations } from './sample-operations.js';

export interface SamplePrincipal {
  name: string;
  grants: readonly string[];
}

export interface LogLine {
  level: string;
  fields: Record<string, unknown>;
  message: string;
}

/** A log that records its lines. */
export function listeningLog(lines: LogLine[] = [], base: object = {}): Log & { lines: LogLine[] } {
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields: { ...base, ...fields }, message });
  return {
    lines,
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => listeningLog(lines, { ...base, ...fields }),
  };
}

export const sampleCodes = sampleDocument['x-error-codes'] as CodeTable;
export const token = { authorization: 'Bearer good' };

export function sampleHandlers(): Handlers<operations, SamplePrincipal> {
  return {
    submitTask: ({ params, body }) => {
      if (params.queue === 'missing') throw new Refusal('QUEUE_NOT_FOUND', 'No such queue.');
      if (body.handler_ref === 'bug') throw new Error('secret internals');
      if (body.handler_ref === 'busy') {
        throw new Refusal('BUSY', 'Try later.', { retryAfterMs: 1500 });
      }
      return { status: 202, body: { id: body.handler_ref, queue: params.queue, ...body } };
    },
    submitBatch: ({ body }) => ({ status: 207, body: body.map((item) => ({ item })) }),
    listDlq: ({ params, query }) => ({ status: 200, body: { op: 'listDlq', params, query } }),
    getTask: ({ params }) => ({ status: 200, body: { op: 'getTask', params } }),
    completeTask: ({ params, headers, body }) => ({
      status: 200,
      body: { op: 'completeTask', params, headers, ...(body && { body }) },
    }),
    getQueue: ({ params, principal }) => ({
      status: 200,
      body: { op: 'getQueue', params, principal: principal.name },
      headers: { ETag: '"3"', 'X-Nothing': undefined },
    }),
    deleteQueue: ({ params }) => ({ status: 204, headers: { 'x-op': `delete ${params.queue}` } }),
    pauseQueue: ({ params }) => ({ status: 204, headers: { 'x-op': `pause ${params.queue}` } }),
    resumeQueue: ({ params }) => ({ status: 204, headers: { 'x-op': `resume ${params.queue}` } }),
    putConfig: ({ body }) => ({ status: 200, body }),
    takeCallback: ({ body }) => ({
      status: 200,
      body: { bytes: Buffer.isBuffer(body) ? body.toString('hex') : null },
    }),
    watchEvents: () => ({
      status: 200,
      contentType: 'text/event-stream',
      content: 'data: one\n\n',
    }),
    getHealth: ({ principal }) => ({ status: 200, body: { who: principal.name } }),
  };
}

export type SampleOptions = Partial<BindOptions<operations, SamplePrincipal>>;

export function sampleApp(options: SampleOptions = {}): BoundApp & { lines: LogLine[] } {
  const log = listeningLog();
  const app = bindOperations<operations, SamplePrincipal>({
    world: { clock: systemClock, random: systemRandom, log },
    document: sampleDocument,
    codes: sampleCodes,
    handlers: sampleHandlers(),
    anonymous: { name: 'anonymous', grants: [] },
    principalName: ({ name }) => name,
    protectedPrefixes: ['/v1'],
    invalidQueryCode: 'INVALID_QUERY',
    quietOperations: ['getHealth'],
    authenticate: ({ headers }) => {
      if (headers.authorization === 'Bearer good') return { name: 'ada', grants: ['*'] };
      if (headers.authorization === 'Bearer poor') return { name: 'bob', grants: [] };
      throw new Refusal('UNAUTHENTICATED', 'Send a bearer token.');
    },
    authorize: (principal) => {
      if (principal.grants.length === 0) throw new Refusal('FORBIDDEN', 'No grant.');
    },
    ...options,
  });
  return Object.assign(app, { lines: log.lines });
}

export async function startSample(
  options: SampleOptions = {},
): Promise<{ app: BoundApp & { lines: LogLine[] } } & Listener> {
  const app = sampleApp(options);
  return { app, ...(await listen(app, '127.0.0.1:0')) };
}
