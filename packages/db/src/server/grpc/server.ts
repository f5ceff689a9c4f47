import type { Socket } from 'node:net';
import type { DescService } from '@bufbuild/protobuf';
import {
  Database as Api,
  dbMethods,
  grpcCodes,
  type DbMethod,
  type DbReason,
  type GrpcCode,
} from '@millrace/contract/db';
import { Health as HealthApi, reflectionV1, reflectionV1alpha } from '@millrace/contract/grpc';
import { connectionsExceeded, type ConnectionLimit } from '@millrace/kit/connection-limit';
import type { TlsFiles } from '@millrace/kit/config';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import {
  type CallAbortReasons,
  GrpcTransport,
  type TransportFault,
  type Method,
  type Methods,
} from '@millrace/wire/grpc';
import { refuse } from '@millrace/engine/value/documents';
import { TurnBytes } from '../calls/turn-queue.js';
import { statusOf } from '../base/status.js';
import type { StreamingRpc, UnaryRpc } from '../service/call.js';
import { grpcStatus, streamingMethod, unaryMethod, type HandlerParts } from './handlers.js';
import type { Health } from './health.js';
import { Reflection } from './reflection.js';

export interface GrpcServerOptions extends Omit<HandlerParts, 'encoded'> {
  memory: PeerMemory;
  connections: ConnectionLimit;
  health: Health;
  tls: TlsFiles | undefined;
}

const abortReasons: CallAbortReasons = {
  cancelled: () => refuse('CANCELLED', 'The caller cancelled the call.'),
  expired: () => {
    const reason = refuse('DEADLINE_EXCEEDED', 'The deadline of the call passed.');
    return { status: grpcStatus(statusOf(reason)), reason };
  },
  noConnection: () => grpcStatus(statusOf(refuse('CONNECTION_LIMIT', connectionsExceeded))),
  explain: (status, { kind, limitBytes }) => {
    const metadata = limitBytes === undefined ? undefined : { limit_bytes: String(limitBytes) };
    const refusal = refuse(transportReasons[kind], status.message, metadata);
    // The protocol defines the codes of its own errors.
    return grpcStatus({ ...statusOf(refusal), code: codeOf(status.code) });
  },
};

const transportReasons = {
  unknown_method: 'NO_SUCH_METHOD',
  invalid_request: 'BAD_REQUEST',
  too_large: 'REQUEST_TOO_LARGE',
  out_of_memory: 'OVERLOADED',
  too_late: 'DEADLINE_EXCEEDED',
} as const satisfies Record<TransportFault['kind'], DbReason>;

function codeOf(code: number): GrpcCode {
  return (Object.keys(grpcCodes) as GrpcCode[]).find((name) => grpcCodes[name] === code)!;
}

/** Serves gRPC on accepted connections. */
export class GrpcServer {
  readonly #connections: GrpcTransport;

  constructor(options: GrpcServerOptions) {
    const { clock, memory, connections, tls } = options;
    const methods = allMethods(options);
    const parts = { clock, memory, connections, methods, abortReasons };
    this.#connections = new GrpcTransport(parts, tls);
  }

  take(socket: Socket): void {
    this.#connections.take(socket);
  }

  /** Waits for calls in flight; `signal` aborts them. */
  async close(signal: AbortSignal): Promise<void> {
    await this.#connections.close(signal);
  }
}

function allMethods(options: GrpcServerOptions): Methods {
  const methods = new Map<string, Method>();
  const versions = [reflectionV1, reflectionV1alpha];
  const services = [Api, HealthApi, ...versions.map((version) => version.ServerReflection)];
  const names = services.map(({ typeName }) => typeName);
  const reflection = new Reflection(names, options.clock);
  const add = (service: DescService, implemented: Record<string, Method>) => {
    for (const { name } of service.methods) {
      methods.set(`/${service.typeName}/${name}`, implemented[name]!);
    }
  };
  add(Api, databaseMethods({ ...options, encoded: new TurnBytes() }));
  add(HealthApi, options.health.methods);
  for (const version of versions) {
    add(version.ServerReflection, { ServerReflectionInfo: reflection.method(version) });
  }
  return methods;
}

function databaseMethods(parts: HandlerParts): Record<string, Method> {
  return Object.fromEntries(
    (Object.keys(dbMethods) as DbMethod[]).map((rpc) => [
      rpc,
      dbMethods[rpc].streaming
        ? streamingMethod(rpc as StreamingRpc, parts)
        : unaryMethod(rpc as UnaryRpc, parts),
    ]),
  );
}
