import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import type { Clock } from '@millrace/kit/clock';
import { takenOver, type Call } from '@millrace/kit/http';
import { fail, type Caller, type ServedHandlers } from '../core/api.js';
import type { Needs } from './allowlist.js';
import { relay } from './relay.js';
import { ServerHealth } from './server-health.js';
import type { Upstream, Upstreams } from './upstream.js';

type ProxyCall = Pick<
  Call<unknown, Caller>,
  'principal' | 'exchange' | 'log' | 'signal' | 'ending' | 'takeOver'
> & { params: { path: string }; body?: unknown };

/** Forwards calls of the dashboard to the queue server and the database. */
export function proxyHandlers(upstreams: Upstreams, clock: Clock) {
  const passTo = (upstream: Upstream) => (call: ProxyCall) => passOn(upstream, call);
  const toQueue = passTo(upstreams.queue);
  const toDatabase = passTo(upstreams.database);
  const health = new ServerHealth(upstreams, clock);
  return {
    getServers: async ({ signal }) => ({ status: 200, body: await health.read(signal) }),
    readQueueServer: toQueue,
    callQueueServer: toQueue,
    putToQueueServer: toQueue,
    patchQueueServer: toQueue,
    deleteFromQueueServer: toQueue,
    readDatabase: toDatabase,
    callDatabase: toDatabase,
    deleteFromDatabase: toDatabase,
  } satisfies Partial<ServedHandlers>;
}

async function passOn(upstream: Upstream, call: ProxyCall): Promise<typeof takenOver> {
  const { exchange, principal, log, signal, ending } = call;
  const body = call.body as Uint8Array | undefined;
  const path = `/${call.params.path}`;
  const method = exchange.method === 'HEAD' ? 'GET' : exchange.method;
  const needs = upstream.allowlist.find(method, path);
  if (needs === undefined) {
    throw fail(
      'NOT_FOUND',
      `The daemon does not forward ${method} ${path} to the ${upstream.name}.`,
    );
  }
  const content = body && parsed(body, exchange.headers['content-type']);
  if (principal.access === 'read_only' && !isReading(needs, content)) {
    throw fail('FORBIDDEN', 'The read-only token cannot change anything. Use the full token.');
  }
  const answer = await upstream.request({
    method,
    target: path + (exchange.queryText === '' ? '' : `?${exchange.queryText}`),
    headers: passedOn(exchange.headers, exchange.id),
    body,
    signal,
  });
  if (answer.statusCode === 401) {
    answer.destroy();
    // A 401 would look like a refusal of the daemon's own token.
    throw upstream.refused();
  }
  await relay(answer, call.takeOver(), { clock: upstream.clock, log, ending });
  return takenOver;
}

function isReading(needs: Needs, content: unknown): boolean {
  if (needs === 'reading') return true;
  if (needs === 'writing') return false;
  return (content as { dry_run?: unknown } | null | undefined)?.dry_run === true;
}

/** Forwards only JSON, which forms of foreign pages cannot send. */
function parsed(body: Uint8Array, contentType: string | undefined): unknown {
  if (contentType?.split(';')[0]!.trim().toLowerCase() !== 'application/json') {
    const found = contentType === undefined ? 'no Content-Type' : `Content-Type ${contentType}`;
    throw fail('UNSUPPORTED_MEDIA_TYPE', `The request has ${found}: send application/json.`);
  }
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'));
  } catch (error) {
    throw fail('INVALID_REQUEST', 'The body is not valid JSON.', { cause: error });
  }
}

const forwarded = ['accept', 'content-type', 'if-match', 'if-none-match'] as const;

/** Forwards only content negotiation and conditions: no credentials and no origin. */
function passedOn(headers: IncomingHttpHeaders, requestId: string): OutgoingHttpHeaders {
  const present = forwarded.filter((name) => headers[name] !== undefined);
  return {
    ...Object.fromEntries(present.map((name) => [name, headers[name]])),
    'x-request-id': requestId,
  };
}
