import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { durationMs as msOf, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  ExecuteRequestSchema,
  ExecuteResponseSchema,
  Handler,
  type ExecuteRequest,
  type ExecuteResponse,
} from '@millrace/contract/queue-grpc';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import {
  parseGrpcTarget,
  sharedLookups,
  systemResolver,
  type FailureType,
  type Guard,
  type OutboundFailure,
  type Resolver,
} from '@millrace/kit/outbound';
import { CallError } from '@millrace/wire/grpc-client';
import { Failure } from '@millrace/wire/http1';
import { executeOutcome, executeResult } from '../../core/execute-outcome.js';
import { outcomeOf, type Outcome } from '../../core/outcome.js';
import type { StoredResult } from '../../core/result.js';
import { evaluated } from './answer-fault.js';
import { callbackHeaders, type CallbackParams, type CallbackTask } from './callback-request.js';
import {
  defaultChannelLimits,
  HandlerChannels,
  type ChannelLimits,
  type HandlerChannel,
} from './handler-channels.js';

export interface GrpcAnswer {
  outcome: Outcome;
  durationMs: number;
  /** The result, if the queue keeps it. */
  stored: StoredResult | undefined;
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
  return { outcome, stored: isStored ? executeResult(result) : undefined };
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
      maxAttempts: config.retry.max_attempts,
      redriveCount: task.redriveCount,
      deadline: timestampFromMs(now + timeoutMs),
      leaseToken: leaseToken ?? '',
      probe: leaseToken === null,
      traceparent: trace.traceparent,
    },
    payload: task.payload,
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
