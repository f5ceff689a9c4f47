import type { IncomingMessage } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { Queue } from '@millrace/contract/queue-grpc';
import type { Clock } from '@millrace/kit/clock';
import type { Address, TlsFiles } from '@millrace/kit/config';
import type { ConnectionLimit } from '@millrace/kit/connection-limit';
import { listenAt, urlOf, type DocumentSchemas } from '@millrace/kit/http';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { TokenSet } from '@millrace/kit/tokens';
import { type GrpcStatus, GrpcTransport, type Method, type ServerCall } from '@millrace/wire/grpc';
import { sessionPath, sessionUpgrade } from '@millrace/worker';
import type { Principal, QueueContext, Role } from '../operations/base/context.js';
import type { Load } from '../operations/base/limits.js';
import { authenticate } from './app.js';
import {
  MethodCodec,
  queryReaders,
  type QueryReaders,
  type StreamedCall,
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

  /**
   * Serves a connection of the REST API that was upgraded. `head` was read from it before; `handOver`
   * is false if there is no room for the connection of this principal.
   */
  upgrade(
    { headers }: IncomingMessage,
    socket: Socket,
    head: Buffer,
    handOver: (socket: Socket, principal: string) => boolean,
  ): void {
    const { tokens, context } = this.options;
    // The HTTP server has let go of the socket, and with it of its errors.
    socket.on('error', () => socket.destroy());
    const refuse = (line: string) => {
      socket.end(`HTTP/1.1 ${line}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    };
    if (headers.upgrade?.toLowerCase() !== sessionUpgrade) return refuse('400 Bad Request');
    if (context.readiness.draining.aborted) return refuse('503 Service Unavailable');
    let caller: Principal;
    try {
      caller = authenticate(headers.authorization, tokens.current, context.clock);
    } catch {
      return refuse('401 Unauthorized');
    }
    if (!handOver(socket, caller.principal)) return refuse('503 Service Unavailable');
    const answer = `Connection: Upgrade\r\nUpgrade: ${sessionUpgrade}\r\n\r\n`;
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${answer}`);
    if (head.length > 0) socket.unshift(head);
    this.#transport.takeUpgraded(socket);
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
    const { context, load } = this.options;
    return {
      takes: 'many',
      maxMessageBytes,
      accept: (call) => this.#accept(call),
      start: (call, requests) =>
        void this.#serve(call, (parts) => serveSession(context, { ...parts, requests, load })),
    };
  }

  /** Serves a call that goes on until it is over or aborted. */
  async #serve(call: ServerCall, run: (parts: StreamedCall) => Promise<void>): Promise<void> {
    const { peerMemory } = this.options;
    const ended = new AbortController();
    call.work = ended;
    try {
      await run({
        call,
        identify: () => this.#caller(call),
        signal: ended.signal,
        isMemoryFull: () => peerMemory.isOverLimit,
      });
      call.end();
    } catch (error) {
      this.#refuse(call, error);
    }
  }

  /** `Claim` and `Events`. */
  #stream(codec: MethodCodec): Method {
    const { context } = this.options;
    const open = codec.path.endsWith('/Events') ? streamEvents : streamTasks;
    const encode = (message: object) => codec.write(message);
    return {
      takes: 'one',
      maxMessageBytes: maxClaimBytes,
      accept: (call) => this.#accept(call),
      start: (call, bytes) =>
        void this.#serve(call, async (parts) =>
          open(context, { ...parts, request: codec.read(bytes), encode }),
        ),
    };
  }
}
