import type { IncomingMessage } from 'node:http';
import { createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Queue } from '@millrace/contract/queue-grpc';
import type { Clock } from '@millrace/kit/clock';
import type { Address, TlsFiles } from '@millrace/kit/config';
import type { ConnectionLimit } from '@millrace/kit/connection-limit';
import { listenAt, urlOf, type DocumentSchemas } from '@millrace/kit/http';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { TokenSet } from '@millrace/kit/tokens';
import {
  type GrpcStatus,
  GrpcTransport,
  type Method,
  type RequestQueue,
  type ServerCall,
} from '@millrace/wire/grpc';
import { sessionPath, sessionUpgrade } from '@millrace/worker';
import type { Principal, QueueContext, Role } from '../operations/base/context.js';
import type { Load } from '../operations/base/limits.js';
import { authenticate } from './app.js';
import {
  MethodCodec,
  queryReaders,
  type QueryReaders,
  type UnaryCall,
  unaryCalls,
} from './grpc-calls.js';
import { streamTasks } from './claim-stream.js';
import { streamEvents } from './event-stream.js';
import { abortReasons, statusOf } from './grpc-status.js';
import { serveSession } from './session.js';

export interface GrpcServerOptions {
  context: QueueContext;
  tokens: { readonly current: TokenSet<Role> };
  load: Load;
  schemas: DocumentSchemas;
  /** Shared with the HTTP listeners. */
  peerMemory: PeerMemory;
  connections: ConnectionLimit;
  tls: TlsFiles | undefined;
}

const maxMessageBytes = 16 * 2 ** 20;
const maxClaimBytes = 2 ** 20;

/** `queue.v1.Queue` and `queue.v1.Session`: the operations of the REST API over gRPC. */
export class GrpcServer {
  readonly #transport: GrpcTransport;
  readonly #listener = createServer({ noDelay: true, keepAlive: true }, (socket) => {
    // The transport handles the close; this only keeps the error from being thrown.
    socket.on('error', () => socket.destroy());
    this.#transport.take(socket);
  });

  readonly #queries: QueryReaders;
  /** The status of calls without a token. */
  #noToken: GrpcStatus | undefined;

  constructor(private readonly options: GrpcServerOptions) {
    const { context, peerMemory: memory, connections, schemas, tls } = options;
    const { clock } = context;
    this.#queries = queryReaders(schemas);
    const methods = new Map<string, Method>();
    for (const method of Queue.methods) {
      const codec = new MethodCodec(method);
      const unary = unaryCalls[method.name];
      methods.set(codec.path, unary ? this.#unary(codec, unary) : this.#stream(codec));
    }
    methods.set(sessionPath, this.#session());
    this.#transport = new GrpcTransport({ clock, memory, methods, abortReasons, connections }, tls);
  }

  /** Serves a connection of the REST API that was upgraded; `head` was read from it before. */
  upgrade({ headers }: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { tokens, context } = this.options;
    const refuse = (line: string) => socket.end(`HTTP/1.1 ${line}\r\nConnection: close\r\n\r\n`);
    if (headers.upgrade?.toLowerCase() !== sessionUpgrade) return void refuse('400 Bad Request');
    if (context.readiness.draining.aborted) return void refuse('503 Service Unavailable');
    try {
      authenticate(headers.authorization, tokens.current, context.clock);
    } catch {
      return void refuse('401 Unauthorized');
    }
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${sessionUpgrade}\r\n\r\n`,
    );
    if (head.length > 0) socket.unshift(head);
    this.#transport.takeUpgraded(socket as Socket);
  }

  /** Resolves with the URL. */
  async listen(address: Address, onError: (error: unknown) => void): Promise<string> {
    const bound = await listenAt(this.#listener, address, '--grpc');
    this.#listener.on('error', onError);
    return urlOf(bound, this.options.tls ? 'grpcs' : 'grpc');
  }

  /** Lets calls finish until the deadline. */
  async drain(clock: Clock, deadlineMs: number): Promise<void> {
    const late = new AbortController();
    const timer = clock.after(deadlineMs, () => late.abort());
    await this.#close(late.signal);
    timer.cancel();
  }

  /** Aborts all calls. */
  close(): Promise<void> {
    return this.#close(AbortSignal.abort());
  }

  async #close(signal: AbortSignal): Promise<void> {
    // Also called when nothing listens.
    const closed = new Promise((resolve) => this.#listener.close(resolve));
    await this.#transport.close(signal);
    await closed;
  }

  #caller({ headers }: ServerCall): Principal {
    const { tokens, context } = this.options;
    return authenticate(headers.authorization, tokens.current, context.clock);
  }

  /** Identifies the caller by the headers, before any of its message is kept. */
  #accept(call: ServerCall): void {
    // An error with its stack would be most of the cost.
    if (call.headers.authorization === undefined && this.#noToken) return call.end(this.#noToken);
    try {
      this.#caller(call);
    } catch (error) {
      const status = statusOf(error, this.options.context.log);
      if (call.headers.authorization === undefined) this.#noToken = status;
      call.end(status);
    }
  }

  #refuse(call: ServerCall, error: unknown): void {
    call.end(statusOf(error, this.options.context.log));
  }

  #unary(codec: MethodCodec, { urgency, run }: UnaryCall): Method {
    const { context, load } = this.options;
    const queries = this.#queries;
    const respond = async (call: ServerCall, request: Buffer): Promise<void> => {
      load.enter(request.length);
      try {
        // The token may have been revoked while the message arrived.
        const caller = this.#caller(call);
        load.admit(urgency);
        const answer = await run({ context, caller, queries }, codec.read(request));
        call.respond(codec.write(answer));
      } catch (error) {
        this.#refuse(call, error);
      } finally {
        load.leave(request.length);
      }
    };
    const start = (call: ServerCall, request: Buffer): void => {
      // Builds no more responses for a peer that does not read those it has.
      if (call.isCongested) call.whenDrained(() => start(call, request));
      else void respond(call, request);
    };
    return { takes: 'one', maxMessageBytes, accept: (call) => this.#accept(call), start };
  }

  #session(): Method {
    const { context, load, peerMemory } = this.options;
    const respond = async (call: ServerCall, requests: RequestQueue): Promise<void> => {
      const ended = new AbortController();
      call.work = ended;
      try {
        await serveSession(context, {
          call,
          requests,
          load,
          identify: () => this.#caller(call),
          signal: ended.signal,
          isMemoryFull: () => peerMemory.isOverLimit,
        });
        call.end();
      } catch (error) {
        this.#refuse(call, error);
      }
    };
    return {
      takes: 'many',
      maxMessageBytes,
      accept: (call) => this.#accept(call),
      start: (call, requests) => void respond(call, requests),
    };
  }

  /** `Claim` and `Events`. */
  #stream(codec: MethodCodec): Method {
    const { context, peerMemory } = this.options;
    const open = codec.path.endsWith('/Events') ? streamEvents : streamTasks;
    const respond = async (call: ServerCall, bytes: Buffer): Promise<void> => {
      const ended = new AbortController();
      call.work = ended;
      try {
        await open(context, {
          call,
          identify: () => this.#caller(call),
          request: codec.read(bytes),
          signal: ended.signal,
          encode: (message: object) => codec.write(message),
          isMemoryFull: () => peerMemory.isOverLimit,
        });
        call.end();
      } catch (error) {
        this.#refuse(call, error);
      }
    };
    return {
      takes: 'one',
      maxMessageBytes: maxClaimBytes,
      accept: (call) => this.#accept(call),
      start: (call, request) => void respond(call, request),
    };
  }
}
