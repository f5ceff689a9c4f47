import {
  logVerbosity,
  Server,
  ServerCredentials,
  setLogVerbosity,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { Queue } from '@millrace/contract/queue-grpc';
import type { Clock } from '@millrace/kit/clock';
import { addressText, type Address } from '@millrace/kit/config';
import { listenError, urlOf, type DocumentSchemas } from '@millrace/kit/http';
import type { TokenSet } from '@millrace/kit/tokens';
import type { QueueContext } from '../../operations/context.js';
import type { Load } from '../../operations/limits/load.js';
import type { Role } from '../../operations/principal.js';
import { authenticate } from '../access.js';
import { unaryCalls, type UnaryCall } from './calls.js';
import { streamTasks } from './claim-stream.js';
import { methodDefinition, readRequest, type Received } from './messages.js';
import { queryReaders, type QueryReaders } from './query-readers.js';
import { toServiceError } from './status.js';

export interface GrpcServerOptions {
  context: QueueContext;
  tokens: { readonly current: TokenSet<Role> };
  load: Load;
  schemas: DocumentSchemas;
}

// The library writes plain text to stderr; every failure reaches our own log as well.
setLogVerbosity(logVerbosity.NONE);

const maxMessageBytes = 16 * 2 ** 20;

/** The service `queue.v1.Queue`: the operations of the REST API over gRPC. */
export class GrpcServer {
  readonly #server = new Server({
    'grpc.max_receive_message_length': maxMessageBytes,
    'grpc.max_send_message_length': maxMessageBytes,
  });

  readonly #queries: QueryReaders;

  constructor(private readonly options: GrpcServerOptions) {
    this.#queries = queryReaders(options.schemas);
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
        if (error) reject(bindError(error, address));
        else resolve(urlOf({ ...address, port }, 'grpc'));
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

  #unary({ urgency, run }: UnaryCall): handleUnaryCall<Received, object> {
    const { context, load } = this.options;
    const queries = this.#queries;
    return ({ metadata, request }, respond) => {
      const answer = async () => {
        const caller = this.#caller(metadata);
        load.enter(0);
        try {
          load.admit(urgency);
          return await run({ context, caller, queries }, readRequest(request));
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

  #claim(): handleServerStreamingCall<Received, object> {
    const { context } = this.options;
    return (call) => {
      const ended = new AbortController();
      call.on('cancelled', () => ended.abort());
      const write = (task: object, sent: () => void) =>
        new Promise<void>((resolve) => {
          const hasRoom = call.write(task, (error: unknown) => error || sent());
          if (hasRoom || ended.signal.aborted) return resolve();
          const go = () => {
            call.off('drain', go);
            ended.signal.removeEventListener('abort', go);
            resolve();
          };
          call.on('drain', go);
          ended.signal.addEventListener('abort', go);
        });
      const run = async () => {
        const caller = this.#caller(call.metadata);
        const request = readRequest(call.request);
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

/** The library reports the cause in the text only. */
function bindError(error: Error, address: Address): unknown {
  const [code] = /\bE[A-Z]{4,}\b/.exec(error.message) ?? [];
  const cause = code === undefined ? error : Object.assign(new Error(error.message), { code });
  return listenError(cause, addressText(address), '--grpc');
}
