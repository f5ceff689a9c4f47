import type { Socket } from 'node:net';
import {
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { DescService } from '@bufbuild/protobuf';
import { Database as Api, dbMethods, type DbMethod } from '@millrace/contract/db';
import { Health as HealthApi, reflectionV1, reflectionV1alpha } from '@millrace/contract/grpc';
import type { TlsFiles } from '../listeners/tls.js';
import { mostRequestBytes } from './codec.js';
import { streamingHandler, unaryHandler, type HandlerParts } from './handlers.js';
import type { Health } from './health.js';
import { Reflection } from './reflection.js';
import type { StreamingRpc, UnaryRpc } from '../service/call.js';

export interface GrpcFaceOptions extends HandlerParts {
  health: Health;
  tls: TlsFiles | undefined;
}

const channel = {
  // What is a little too large gets an answer that says so; what is far too large the library cuts.
  'grpc.max_receive_message_length': 2 * mostRequestBytes,
  'grpc.max_send_message_length': -1,
  // A caller that is gone without a word is noticed within a minute.
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 20_000,
  'grpc.max_concurrent_streams': 1_000,
  'grpc.enable_channelz': 0,
};

/** The gRPC face: takes connections, whoever accepted them. */
export class GrpcFace {
  readonly #server = new Server(channel);
  readonly #injector: ReturnType<Server['createConnectionInjector']>;

  constructor(options: GrpcFaceOptions) {
    const services = [
      Api,
      HealthApi,
      reflectionV1.ServerReflection,
      reflectionV1alpha.ServerReflection,
    ];
    const reflection = new Reflection(services.map(({ typeName }) => typeName));
    this.#server.addService(definitionOf(Api), databaseHandlers(options));
    this.#server.addService(definitionOf(HealthApi), options.health.handlers);
    for (const version of [reflectionV1, reflectionV1alpha]) {
      this.#server.addService(definitionOf(version.ServerReflection), {
        ServerReflectionInfo: reflection.handler(version),
      });
    }
    this.#injector = this.#server.createConnectionInjector(credentialsOf(options.tls));
  }

  take(socket: Socket): void {
    this.#injector.injectConnection(socket);
  }

  /** Lets calls under way finish; `signal` cuts them. */
  async close(signal: AbortSignal): Promise<void> {
    const cut = () => this.#server.forceShutdown();
    if (signal.aborted) cut();
    signal.addEventListener('abort', cut, { once: true });
    try {
      await new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    } finally {
      signal.removeEventListener('abort', cut);
    }
  }
}

function databaseHandlers(parts: HandlerParts): UntypedServiceImplementation {
  return Object.fromEntries(
    (Object.keys(dbMethods) as DbMethod[]).map((rpc) => [
      rpc,
      dbMethods[rpc].streaming
        ? streamingHandler(rpc as StreamingRpc, parts)
        : unaryHandler(rpc as UnaryRpc, parts),
    ]),
  );
}

// Bytes go through as they are: our handlers read and write them, so that what cannot be read is
// answered like any other mistake.
const asIs = (bytes: Buffer): Buffer => bytes;

function definitionOf(service: DescService): ServiceDefinition {
  return Object.fromEntries(
    service.methods.map(({ name, methodKind }) => [
      name,
      {
        path: `/${service.typeName}/${name}`,
        requestStream: methodKind === 'client_streaming' || methodKind === 'bidi_streaming',
        responseStream: methodKind === 'server_streaming' || methodKind === 'bidi_streaming',
        requestSerialize: asIs,
        requestDeserialize: asIs,
        responseSerialize: asIs,
        responseDeserialize: asIs,
      },
    ]),
  );
}

function credentialsOf(tls: TlsFiles | undefined): ServerCredentials {
  if (!tls) return ServerCredentials.createInsecure();
  const pair = [{ private_key: tls.key, cert_chain: tls.cert }];
  return ServerCredentials.createSsl(tls.clientCa ?? null, pair, tls.clientCa !== undefined);
}
