import type { Clock } from '@millrace/kit/clock';
import { tlsOptions, type TlsFiles } from '@millrace/kit/config';
import { HttpServer, type HttpServerLimits } from '@millrace/kit/http';
import type { Log } from '@millrace/kit/log';
import { refuse } from '@millrace/engine/value/refusal';
import type { Calls } from '../calls/calls.js';
import { statusJson } from '../rest/errors.js';
import type { RestServer } from '../rest/server.js';
import { statusOf } from '../base/status.js';

// An NDJSON bulk is one request for as long as it sends lines.
const requestTimeoutMs = 3_600_000;

type Limits = Pick<HttpServerLimits, 'peerMemory' | 'maxConnections' | 'onDrop'>;

export interface HttpListenerParts extends Limits {
  calls: Calls;
  clock: Clock;
  log: Log;
}

export function httpServer(
  rest: RestServer,
  tls: TlsFiles | undefined,
  { calls, clock, log, peerMemory, maxConnections, onDrop }: HttpListenerParts,
): HttpServer {
  const server: HttpServer = new HttpServer({
    clock,
    log,
    peerMemory,
    maxConnections,
    onDrop,
    requestTimeoutMs,
    handle: (exchange) => {
      if (calls.isDraining) server.isDraining = true;
      rest.handle(exchange);
    },
    malformed: (_status, detail) => ({
      contentType: 'application/json',
      body: JSON.stringify(statusJson(statusOf(refuse('BAD_REQUEST', `${detail}.`)))),
    }),
    onMalformed: (status, reason) => log.info({ status, reason }, 'malformed HTTP request'),
    tls: tlsOptions(tls),
  });
  return server;
}
