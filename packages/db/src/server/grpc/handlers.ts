import type { Clock } from '@millrace/kit/clock';
import type { ServerCall, GrpcStatus, SingleRequestMethod } from '@millrace/wire/grpc';
import { refuse } from '@millrace/engine/value/documents';
import type {
  Abortable,
  PushSource,
  PushSink,
  Pollable,
  StreamingRpc,
  UnaryRpc,
} from '../service/call.js';
import { type Message, create, toBinary } from '@bufbuild/protobuf';
import { computeOnce, duration } from '../service/records.js';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { dbErrorDomain, grpcCodes, type DbMethod } from '@millrace/contract/db';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
  StatusSchema,
} from '@millrace/contract/grpc';
import type { CallStatus } from '../base/status.js';
import type { Credentials } from '../access/access.js';
import type { Calls, CallScope } from '../calls/calls.js';
import { type TurnBytes, TurnQueue } from '../calls/turn-queue.js';
import { MethodCodec, requestLimit, RecordBatchWriter } from './codec.js';

// Enough to keep the connection busy while the next message is encoded.
const maxUnsentBytes = 1024 * 1024;
const maxScarceBytes = 64 * 1024;

interface SenderOptions {
  call: ServerCall;
  clock: Clock;
  scope: Abortable;
  /** A call is ended when its caller reads nothing for this long. */
  stallMs: number;
}

/** Sends messages with backpressure from the caller. */
export class StreamSender {
  readonly #options: SenderOptions;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Resolves when the next message may be sent; undefined means at once. */
  send(message: Uint8Array): Promise<void> | undefined {
    const { call, scope } = this.#options;
    scope.throwIfAborted();
    call.send(message);
    return this.#unlessTaken();
  }

  /** Like `send`, for a message that already has its gRPC prefix. */
  sendFramed(frame: Uint8Array): Promise<void> | undefined {
    const { call, scope } = this.#options;
    scope.throwIfAborted();
    call.sendFramed(frame);
    return this.#unlessTaken();
  }

  /** Whether a push would be sent without waiting. */
  hasRoom(): boolean {
    const { call } = this.#options;
    const { unsentBytes } = call;
    return unsentBytes <= maxScarceBytes || (unsentBytes <= maxUnsentBytes && !call.isMemoryScarce);
  }

  /** Like `sendFramed`, for callers that check `hasRoom` first. */
  push(frames: Uint8Array): void {
    this.#options.call.sendFramed(frames);
  }

  #unlessTaken(): Promise<void> | undefined {
    return this.hasRoom() ? undefined : this.#taken();
  }

  async #taken(): Promise<void> {
    const { call, clock, stallMs } = this.#options;
    const { signal } = this.#options.scope;
    await new Promise<void>((resolve, reject) => {
      const end = (settle: () => void) => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
        call.onSent = undefined;
        settle();
      };
      const onAbort = () => end(() => reject(signal.reason));
      const onStall = () => end(() => reject(stalled(stallMs)));
      let timer = clock.after(stallMs, onStall);
      call.onSent = () => {
        if (this.hasRoom()) return end(resolve);
        timer.cancel();
        timer = clock.after(stallMs, onStall);
      };
      signal.addEventListener('abort', onAbort);
    });
  }
}

function stalled(stallMs: number): Error {
  const text = `The caller read nothing for ${stallMs / 1000} s. Call again to continue.`;
  return refuse('DEADLINE_EXCEEDED', text);
}

/**
 * Lets a stream push its messages, all of one turn in one write. Streams with the same view share
 * message arrays, so the bytes are encoded once for each `frame` function.
 */
function pushThrough(
  sender: StreamSender,
  messages: object & Partial<PushSource<Message>>,
  frame: (message: Message) => Buffer,
): void {
  const sink: PushSink<Message> = {
    hasRoom: () => sender.hasRoom(),
    take: (some) => sender.push(computeOnce(some, rowOf, frame)),
  };
  messages.pushTo?.(sink);
}

function rowOf(messages: readonly Message[], frame: (message: Message) => Buffer): Buffer {
  const frames = messages.map(frame);
  return frames.length === 1 ? frames[0]! : Buffer.concat(frames);
}

/** The final status of a gRPC call, with machine-readable details as google.rpc.Status. */
export function grpcStatus(status: CallStatus): GrpcStatus {
  const code = grpcCodes[status.code];
  const { reason, message, metadata, retryAfterMs, violations } = status;
  const info = create(ErrorInfoSchema, { reason, domain: dbErrorDomain, metadata });
  const details = [anyPack(ErrorInfoSchema, info)];
  if (retryAfterMs !== undefined) {
    const retry = create(RetryInfoSchema, { retryDelay: duration(retryAfterMs) });
    details.push(anyPack(RetryInfoSchema, retry));
  }
  if (violations.length > 0) {
    const fieldViolations = violations.map(({ pointer, message: description }) => ({
      field: pointer,
      description,
    }));
    details.push(anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations })));
  }
  const whole: Message = create(StatusSchema, { code, message, details });
  return { code, message, details: Buffer.from(toBinary(StatusSchema, whole as never)) };
}

export interface HandlerParts {
  calls: Calls;
  clock: Clock;
  /** Only the owner can reach the listener (Unix socket), so no key is needed. */
  trusted: boolean;
  /** Bytes encoded in this turn of the event loop by all methods. */
  encoded: TurnBytes;
  /** Runs the writes that the calls of a turn have submitted. */
  startWrites: () => void;
}

/**
 * How long a caller may take nothing of a stream. The transport ends those that read too slowly
 * much earlier, except watches; this is for what it cannot see.
 */
const stallMs = 600_000;

/** A call whose request has arrived. */
interface ReadyCall {
  readonly call: ServerCall;
  readonly scope: CallScope;
  readonly request: Buffer;
}

/** A call whose response is known but not encoded. */
interface FinishedCall {
  readonly call: ServerCall;
  readonly scope: CallScope;
  readonly message: Message;
}

export function unaryMethod(rpc: UnaryRpc, parts: HandlerParts): SingleRequestMethod {
  const { calls, clock, encoded, startWrites } = parts;
  const turns = { clock, onDelay: (delayMs: number) => calls.queued(delayMs) };
  const codec = new MethodCodec(rpc);
  const encode = ({ call, scope, message }: FinishedCall): void => {
    try {
      const bytes = codec.encode(message);
      encoded.add(bytes.length);
      calls.close(scope);
      call.respond(bytes);
    } catch (error) {
      refuseCall(parts, scope, call, error);
    }
  };
  const finishing = new TurnQueue(encode, turns);
  const finish = (call: FinishedCall): void => {
    if (encoded.isSpent) finishing.push(call);
    else encode(call);
  };
  const begin = (ready: ReadyCall): void => {
    const { call, scope, request } = ready;
    const fail = (error: unknown) => refuseCall(parts, scope, call, error);
    if (call.isCongested) return call.whenDrained(() => queue.push(ready));
    try {
      scope.throwIfAborted();
      identify(parts, scope, call);
      const respond = calls.unary(scope, rpc, codec.decode(request));
      if (!(respond instanceof Promise)) return encode({ call, scope, message: respond });
      respond.then((message) => finish({ call, scope, message }), fail);
    } catch (error) {
      fail(error);
    }
  };
  // A turn of the event loop less for each write.
  const queue = new TurnQueue(begin, { ...turns, onEnd: startWrites });
  return {
    takes: 'one',
    ...(rpc === 'BulkWrite' ? { maxMessageBytes: 2 * requestLimit(rpc) } : {}),
    accept: (call) => accept(parts, rpc, call),
    start: (call, request) => queue.push({ call, scope: openScope(parts, rpc, call), request }),
  };
}

export function streamingMethod(rpc: StreamingRpc, parts: HandlerParts): SingleRequestMethod {
  const { calls, clock } = parts;
  const codec = new MethodCodec(rpc);
  const frame = (message: Message) => codec.frame(message);
  const respond = async ({ call, scope, request }: ReadyCall): Promise<void> => {
    try {
      scope.throwIfAborted();
      identify(parts, scope, call);
      scope.recordWriter = newBatchWriter;
      await calls.stream(scope, rpc, codec.decode(request), async (messages) => {
        // A watch may stay quiet for long; headers confirm that it is open.
        if (rpc === 'Watch') call.sendHeaders();
        const sender = new StreamSender({ call, clock, scope, stallMs });
        pushThrough(sender, messages, frame);
        for await (const first of messages) {
          for (let next: Message | undefined = first; next; next = poll(messages)) {
            const taken = sender.sendFramed(codec.frame(next));
            if (taken) await taken;
          }
        }
      });
      calls.close(scope);
      call.end();
    } catch (error) {
      refuseCall(parts, scope, call, error);
    }
  };
  const begin = (ready: ReadyCall): void => {
    if (ready.call.isCongested) ready.call.whenDrained(() => queue.push(ready));
    else void respond(ready);
  };
  const queue = new TurnQueue(begin, { clock, onDelay: (delayMs) => calls.queued(delayMs) });
  return {
    takes: 'one',
    isExemptFromReadRate: rpc === 'Watch',
    accept: (call) => accept(parts, rpc, call),
    start: (call, request) => queue.push({ call, scope: openScope(parts, rpc, call), request }),
  };
}

const newBatchWriter = () => new RecordBatchWriter();

function poll(messages: object & Partial<Pollable<Message>>): Message | undefined {
  return messages.poll?.();
}

function openScope({ calls }: HandlerParts, rpc: DbMethod, call: ServerCall): CallScope {
  const scope = calls.open(rpc, 'grpc', call.peer, call.deadline);
  call.work = scope;
  return scope;
}

function refuseCall({ calls }: HandlerParts, scope: CallScope, call: ServerCall, error: unknown) {
  const status = calls.explain(scope, error);
  calls.close(scope, status);
  call.end(grpcStatus(status));
}

/** Authenticates the caller before any of its request is buffered. */
function accept(parts: HandlerParts, rpc: DbMethod, call: ServerCall): void {
  try {
    if (parts.trusted) parts.calls.trust();
    else parts.calls.checkCaller(rpc, credentialsOf(call));
  } catch (error) {
    refuseCall(parts, openScope(parts, rpc, call), call, error);
  }
}

function identify({ calls, trusted }: HandlerParts, scope: CallScope, call: ServerCall): void {
  if (trusted) return calls.trust();
  calls.identify(scope, credentialsOf(call));
}

function credentialsOf({ headers }: ServerCall): Credentials {
  return {
    apiKey: firstOf(headers['x-api-key']),
    authorization: firstOf(headers.authorization),
  };
}

/** HTTP joins repeated headers with commas. */
function firstOf(value: string | string[] | undefined): string | undefined {
  const text = Array.isArray(value) ? value[0] : value;
  const comma = text?.indexOf(',') ?? -1;
  return comma === -1 ? text : text!.slice(0, comma).trim();
}
