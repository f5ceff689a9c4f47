import { fileURLToPath } from 'node:url';
import * as grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const proto = fileURLToPath(new URL('../../../contract/proto/', import.meta.url));

/** `queue.v1` as a program finds it that knows nothing of our generated code. */
export const queueV1 = (
  grpc.loadPackageDefinition(
    loadSync('queue/v1/queue.proto', {
      keepCase: true,
      longs: Number,
      defaults: true,
      includeDirs: [proto],
    }),
  ) as any
).queue.v1;

export interface Executed {
  task: Record<string, any>;
  payload: Buffer;
  metadata: Record<string, unknown>;
  call: grpc.ServerUnaryCall<any, any>;
}

/** The answer, or a status of the call; a promise that never settles leaves the call open. */
export type Execute = (request: Executed) => object | Promise<object>;

export interface GrpcHandler {
  port: number;
  url: string;
  received: Executed[];
}

interface HandlerOptions {
  credentials?: grpc.ServerCredentials;
  onEnd: (end: () => void) => void;
}

/** A server of `queue.v1.Handler` on loopback. A thrown object with a code is its status. */
export async function startGrpcHandler(
  execute: Execute,
  { credentials = grpc.ServerCredentials.createInsecure(), onEnd }: HandlerOptions,
): Promise<GrpcHandler> {
  const received: Executed[] = [];
  const server = new grpc.Server();
  server.addService(queueV1.Handler.service, {
    Execute: (call: grpc.ServerUnaryCall<any, any>, respond: grpc.sendUnaryData<any>) => {
      const { task, payload } = call.request;
      const request = { task, payload, metadata: call.metadata.getMap(), call };
      received.push(request);
      const run = async () => execute(request);
      run().then(
        (answer) => respond(null, answer),
        (status: unknown) => respond(status as grpc.ServiceError),
      );
    },
  });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  onEnd(() => server.forceShutdown());
  return { port, url: `grpc://127.0.0.1:${port}`, received };
}
