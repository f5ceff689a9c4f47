import { NodeConnections } from './node-http2/node-connections.js';
import { Connections } from './grpc/connections.js';
import type { GrpcServerOptions } from './grpc/open-call.js';
import type { GrpcTransport, TlsKeys } from './grpc/transport.js';

/** `own`: the HTTP/2 server of this package; `node`: node:http2. */
export const transportKinds = ['own', 'node'] as const;
export type TransportKind = (typeof transportKinds)[number];

export function createTransport(
  kind: TransportKind,
  options: GrpcServerOptions,
  tls?: TlsKeys,
): GrpcTransport {
  return kind === 'node' ? new NodeConnections(options, tls) : new Connections(options, tls);
}
