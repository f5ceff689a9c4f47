import type { Clock } from '@millrace/kit/clock';
import { tlsOptions, type TlsFiles } from '@millrace/kit/config';
import { HttpServer, type HttpServerLimits } from '@millrace/kit/http';
import type { Log } from '@millrace/kit/log';
import { refuse } from '../../engine/refusal.js';
import type { Calls } from '../calls/calls.js';
import { statusJson } from '../rest/errors.js';
import type { RestServer } from '../rest/server.js';
import { statusOf } from '../status.js';

// An NDJSON bulk is one request for as long as it sends lines.
const requestTimeoutMs = 3_600_000;

export interface HttpListenerParts extends Pick<HttpServerLimits, 'peerMemory' | 'maxConnections'> {
  calls: Calls;
  clock: Clock;
  log: Log;
}

export function httpServer(
  rest: RestServer,
  tls: TlsFiles | undefined,
  { calls, clock, log, peerMemory, maxConnections }: HttpListenerParts,
): HttpServer {
  const server: HttpServer = new HttpServer({
    clock,
    peerMemory,
    maxConnections,
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
