import type { JsonObject } from '@bufbuild/protobuf';
import {
  Server,
  ServerCredentials,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { Queue } from '@millrace/contract/queue-grpc';
import type { Clock } from '@millrace/kit/clock';
import { addressText, type Address } from '@millrace/kit/config';
import type { TokenSet } from '@millrace/kit/tokens';
import type { QueueContext } from '../../operations/context.js';
import type { Load } from '../../operations/limits/load.js';
import type { Role } from '../../operations/principal.js';
import { authenticate } from '../access.js';
import { streamTasks, unaryCalls, type UnaryCall } from './calls.js';
import { methodDefinition } from './messages.js';
import { toServiceError } from './status.js';

export interface GrpcServerOptions {
  context: QueueContext;
  tokens: { readonly current: TokenSet<Role> };
  load: Load;
}

const maxMessageBytes = 16 * 2 ** 20;

/** The service `queue.v1.Queue`: the operations of the REST API over gRPC. */
export class GrpcServer {
  readonly #server = new Server({
    'grpc.max_receive_message_length': maxMessageBytes,
    'grpc.max_send_message_length': maxMessageBytes,
  });

  constructor(private readonly options: GrpcServerOptions) {
    const definition: Record<string, ServiceDefinition[string]> = {};
    const handlers: Record<string, UntypedServiceImplementation[string]> = {};
    for (const method of Queue.methods) {
      definition[method.name] = methodDefinition(method);
      const call = unaryCalls[method.name];
      handlers[method.name] = call ? this.#unary(call) : this.#claim();
    }
    this.#server.addService(definition, handlers);
  }

  /** Resolves with the URL. */
  listen(address: Address): Promise<string> {
    return new Promise((resolve, reject) => {
      const credentials = ServerCredentials.createInsecure();
      this.#server.bindAsync(addressText(address), credentials, (error, port) => {
        if (error) reject(error);
        else resolve(`http://${addressText({ ...address, port })}`);
      });
    });
  }

  /** Lets calls finish until the deadline. */
  async drain(clock: Clock, deadlineMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = clock.after(deadlineMs, () => this.#server.forceShutdown());
      this.#server.tryShutdown(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  close(): void {
    this.#server.forceShutdown();
  }

  #caller(metadata: { get(name: string): unknown[] }) {
    const [value] = metadata.get('authorization');
    const header = typeof value === 'string' ? value : undefined;
    return authenticate(header, this.options.tokens.current, this.options.context.clock);
  }

  #unary(run: UnaryCall): handleUnaryCall<JsonObject, object> {
    const { context, load } = this.options;
    return ({ metadata, request }, respond) => {
      const answer = async () => {
        const caller = this.#caller(metadata);
        load.enter(0);
        try {
          load.admit('new_work');
          return await run(context, caller, request);
        } finally {
          load.leave(0);
        }
      };
      answer().then(
        (result) => respond(null, result),
        (error: unknown) => respond(toServiceError(error, context.log)),
      );
    };
  }

  #claim(): handleServerStreamingCall<JsonObject, object> {
    const { context } = this.options;
    return (call) => {
      const ended = new AbortController();
      call.on('cancelled', () => ended.abort());
      const write = (task: object) =>
        new Promise<void>((resolve) => {
          if (call.write(task)) resolve();
          else call.once('drain', resolve);
        });
      const run = async () => {
        const caller = this.#caller(call.metadata);
        const { request } = call;
        const remoteIp = call.getPeer().replace(/:\d+$/, '');
        await streamTasks(context, caller, { request, remoteIp, signal: ended.signal, write });
      };
      run().then(
        () => call.end(),
        (error: unknown) => call.emit('error', toServiceError(error, context.log)),
      );
    };
  }
}
