import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import { durationMs as msOf, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type ExecuteRequest,
  ExecuteRequestSchema,
  type ExecuteResponse,
  ExecuteResponseSchema,
  Handler,
  SuspensionSchema,
} from '@millrace/contract/queue-grpc';
import { type Clock, systemClock, type Timer } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import {
  type AddressPolicy,
  type FailureType,
  type Guard,
  type OutboundFailure,
  parseGrpcTarget,
  type Resolver,
  sharedLookups,
  systemResolver,
  type Target,
} from '@millrace/kit/outbound';
import { CallError, Channel } from '@millrace/wire/grpc-client';
import { dialTarget, type DialTools, Failure, systemConnect } from '@millrace/wire/http1';
import { createSecureContext, rootCertificates as systemRoots } from 'node:tls';
import { executeOutcome, executeResult, type Outcome, outcomeOf } from '../core/outcome.js';
import type { Suspension } from '../core/flow.js';
import { type StoredResult, suspensionOf } from '../core/result.js';
import {
  callbackHeaders,
  type CallbackParams,
  type CallbackTask,
  evaluated,
} from './callback-request.js';

export interface GrpcAnswer {
  outcome: Outcome;
  durationMs: number;
  /** The result, if the queue keeps it. */
  stored: StoredResult | undefined;
  /** The handler waits instead of having succeeded. */
  suspension?: Suspension | undefined;
}

/** Runs tasks by calling `queue.v1.Handler/Execute`. */
export interface GrpcHandlers {
  /** A failed call is a return value; only an invalid request throws. */
  execute(task: CallbackTask, params: CallbackParams): Promise<GrpcAnswer>;
  /** Closes every channel; calls in flight fail. */
  close(): void;
}

export interface GrpcHandlersOptions {
  guard: Guard;
  clock?: Clock;
  resolver?: Resolver;
  /** PEM certificates to trust besides those of Node. */
  rootCertificates?: Buffer;
  limits?: Partial<ChannelLimits>;
}

/** Status INTERNAL. */
const internalCode = 13;
const executePath = `/${Handler.typeName}/${Handler.method.execute.name}`;

export class GrpcHandlerClient implements GrpcHandlers {
  readonly #clock: Clock;
  readonly #channels: HandlerChannels;

  constructor(private readonly options: GrpcHandlersOptions) {
    const { clock = systemClock, resolver = systemResolver, limits } = options;
    this.#clock = clock;
    this.#channels = new HandlerChannels({
      clock,
      resolver: sharedLookups(resolver, clock),
      limits: { ...defaultChannelLimits, ...limits },
      rootCertificates: options.rootCertificates,
    });
  }

  get openChannels(): number {
    return this.#channels.size;
  }

  async execute(task: CallbackTask, params: CallbackParams): Promise<GrpcAnswer> {
    const startedAt = this.#clock.monotonic();
    const { callback, retry } = params.config;
    const elapsed = () => Math.round(this.#clock.monotonic() - startedAt);
    const failed = (errorType: FailureType, message: string, remoteIp?: string): GrpcAnswer => {
      const failure: OutboundFailure = {
        ok: false,
        errorType,
        message,
        durationMs: elapsed(),
        ...(remoteIp !== undefined && { remoteIp }),
      };
      const outcome = outcomeOf(failure, retry, this.#clock.now());
      return { outcome, durationMs: failure.durationMs, stored: undefined };
    };
    const parsed = parseGrpcTarget(callback.url ?? '');
    if (!parsed.ok) return failed('TARGET_BLOCKED', parsed.reason);
    const verdict = this.options.guard(parsed.target);
    if ('blocked' in verdict) return failed('TARGET_BLOCKED', verdict.blocked);
    const { connect_timeout_ms: connectMs } = callback;
    const channel = this.#channels.open(parsed.target, verdict.policy, connectMs);
    let ended: Ended;
    try {
      ended = await call(channel, task, params);
    } finally {
      this.#channels.release(channel);
    }
    const durationMs = elapsed();
    if (ended instanceof Failure) {
      return failed(ended.errorType, ended.message, ended.remoteIp ?? channel.remoteIp);
    }
    const answer = ended;
    const facts = { httpStatus: null, remoteIp: channel.remoteIp ?? null };
    return evaluated(facts, () => ({
      ...answerOf(answer, facts.remoteIp, callback.keep_result),
      durationMs,
    }));
  }

  close(): void {
    this.#channels.close();
  }
}

/** The response message, the status of the call, or why there is neither. */
type Ended = Buffer | CallError | Failure;

async function call(
  { channel }: HandlerChannel,
  task: CallbackTask,
  params: CallbackParams,
): Promise<Ended> {
  const { signal, now, timeoutMs } = params;
  const message = framed(toBinary(ExecuteRequestSchema, executeRequest(task, params)));
  try {
    return await channel.unary(executePath, message, {
      // The handler sees it too.
      deadline: now + timeoutMs,
      signal,
      headers: metadataOf(task, params),
    });
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    if (signal?.aborted) return new Failure('ABORTED', 'The call was aborted');
    return error.cause ?? error;
  }
}

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function answerOf(
  ended: Buffer | CallError,
  remoteIp: string | null,
  keepsResult: boolean,
): Omit<GrpcAnswer, 'durationMs'> {
  if (ended instanceof CallError) {
    const { code, details: message } = ended;
    const outcome = executeOutcome({ code, message, retryAfterMs: null, remoteIp });
    return { outcome, stored: undefined };
  }
  let answer: ExecuteResponse;
  try {
    answer = fromBinary(ExecuteResponseSchema, ended);
  } catch (error) {
    const message = `The response is not a valid ExecuteResponse: ${messageOf(error)}`;
    const invalid = { code: internalCode, message, retryAfterMs: null, remoteIp };
    return { outcome: executeOutcome(invalid), stored: undefined };
  }
  const { status, result, retryAfter } = answer;
  const code = status?.code ?? 0;
  const message = status?.message ?? '';
  const retryAfterMs = retryAfter ? Math.ceil(msOf(retryAfter)) : null;
  const outcome = executeOutcome({ code, message, retryAfterMs, remoteIp });
  const isStored = keepsResult && code === 0;
  const stored = isStored ? executeResult(result) : undefined;
  const { suspend } = answer;
  if (code !== 0 || !suspend) return { outcome, stored };
  const suspension = suspensionOf(toJson(SuspensionSchema, suspend));
  if (typeof suspension !== 'string') return { outcome, stored: undefined, suspension };
  const text = `The answer suspends the task, but ${suspension}`;
  const failure = { kind: 'failed', errorType: 'INVALID_SUSPENSION', message: text } as const;
  return { outcome: { ...outcome, ...failure }, stored: undefined };
}

function executeRequest(task: CallbackTask, params: CallbackParams): ExecuteRequest {
  const { now, timeoutMs, leaseToken, trace, config } = params;
  return create(ExecuteRequestSchema, {
    task: {
      id: task.id,
      queue: task.queue,
      handlerRef: task.handlerRef,
      payloadContentType: task.payloadContentType,
      headers: task.headers,
      attempt: task.attempt,
      maxAttempts: task.options?.maxAttempts ?? config.retry.max_attempts,
      redriveCount: task.redriveCount,
      deadline: timestampFromMs(now + timeoutMs),
      leaseToken: leaseToken ?? '',
      probe: leaseToken === null,
      traceparent: trace.traceparent,
    },
    payload: task.payload,
    dependencies:
      params.dependencies?.map((each) => ({
        id: each.id,
        ...(each.key !== undefined && { key: each.key }),
        ...(each.handlerRef !== undefined && { handlerRef: each.handlerRef }),
        status: each.status,
        ...(each.result !== null && { result: Buffer.from(each.result) }),
        ...(each.isResultOmitted && { resultOmitted: true }),
      })) ?? [],
  });
}

/** Headers of the HTTP callback that gRPC sets itself. */
const ownNames = new Set(['content-type', 'user-agent']);

/** The headers of an HTTP callback; those of the task are in the message. */
function metadataOf(task: CallbackTask, params: CallbackParams): Record<string, string> {
  const headers = Object.entries(callbackHeaders({ ...task, headers: {} }, params))
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !ownNames.has(name));
  return Object.fromEntries(headers);
}

export interface ChannelLimits {
  /** Channels that are open at the same time. */
  maxChannels: number;
  /** A channel without calls is closed after this time. */
  idleMs: number;
}

export const defaultChannelLimits: ChannelLimits = { maxChannels: 256, idleMs: 60_000 };

export interface ChannelTools {
  clock: Clock;
  resolver: Resolver;
  limits: ChannelLimits;
  /** PEM certificates to trust besides those of Node. */
  rootCertificates?: Buffer | undefined;
}

/** A channel to one target, which connects only to addresses that its policy allows. */
export interface HandlerChannel {
  readonly key: string;
  readonly channel: Channel;
  /** The address of the last connection. */
  remoteIp: string | undefined;
  calls: number;
  idle: Timer | undefined;
}

/** Messages above this size are refused; results are much smaller. */
const maxMessageBytes = 4 * 2 ** 20;

/** One channel per target, policy and connect timeout. */
export class HandlerChannels {
  readonly #channels = new Map<string, HandlerChannel>();
  readonly #dialTools: DialTools;

  constructor(private readonly tools: ChannelTools) {
    const { clock, resolver, rootCertificates: extra } = tools;
    const secureContext = extra && createSecureContext({ ca: [...systemRoots, extra] });
    this.#dialTools = { clock, resolver, connect: systemConnect, secureContext };
  }

  get size(): number {
    return this.#channels.size;
  }

  /** Opens or reuses a channel; each `open` needs a `release`. */
  open(target: Target, policy: AddressPolicy, connectTimeoutMs: number): HandlerChannel {
    const key = `${target.origin} ${policy.key} ${connectTimeoutMs}`;
    const found = this.#channels.get(key) ?? this.#create(key, target, policy, connectTimeoutMs);
    // The most recently used one is last.
    this.#channels.delete(key);
    this.#channels.set(key, found);
    found.calls++;
    found.idle?.cancel();
    this.#closeSurplus();
    return found;
  }

  release(channel: HandlerChannel): void {
    channel.calls--;
    if (channel.calls > 0) return;
    channel.idle = this.tools.clock.after(this.tools.limits.idleMs, () => this.#close(channel));
    this.#closeSurplus();
  }

  close(): void {
    for (const channel of this.#channels.values()) this.#close(channel);
  }

  #create(
    key: string,
    target: Target,
    policy: AddressPolicy,
    connectTimeoutMs: number,
  ): HandlerChannel {
    const params = { target, policy, connectTimeoutMs };
    const created: HandlerChannel = {
      key,
      channel: new Channel({
        place: async (signal) => {
          const { socket, remoteIp } = await dialTarget(params, this.#dialTools, signal);
          created.remoteIp = remoteIp;
          return socket;
        },
        tls: target.scheme === 'grpcs' ? {} : undefined,
        authority: target.authority,
        clock: this.tools.clock,
        connectTimeoutMs,
        maxMessageBytes,
      }),
      remoteIp: undefined,
      calls: 0,
      idle: undefined,
    };
    return created;
  }

  #close(channel: HandlerChannel): void {
    channel.idle?.cancel();
    this.#channels.delete(channel.key);
    channel.channel.close();
  }

  /** Channels with calls stay open: `max_in_flight` of their queues limits those. */
  #closeSurplus(): void {
    let surplus = this.#channels.size - this.tools.limits.maxChannels;
    for (const channel of this.#channels.values()) {
      if (surplus <= 0) return;
      if (channel.calls > 0) continue;
      this.#close(channel);
      surplus--;
    }
  }
}
