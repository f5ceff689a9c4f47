import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { durationMs as msOf, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  connectivityState,
  Metadata,
  status as codes,
  type ClientUnaryCall,
  type ServiceError,
} from '@grpc/grpc-js';
import {
  ExecuteRequestSchema,
  ExecuteResponseSchema,
  Handler,
  type ExecuteRequest,
  type ExecuteResponse,
} from '@millrace/contract/queue-grpc';
import { systemClock, type Clock } from '@millrace/kit/clock';
import {
  parseGrpcTarget,
  sharedLookups,
  systemResolver,
  type AddressPolicy,
  type FailureType,
  type Guard,
  type OutboundFailure,
  type Resolver,
  type Target,
} from '@millrace/kit/outbound';
import { executeOutcome, executeResult } from '../../core/execute-outcome.js';
import { outcomeOf, type Outcome } from '../../core/outcome.js';
import type { StoredResult } from '../../core/result.js';
import { evaluated } from '../answer-fault.js';
import { callbackHeaders, type CallbackParams, type CallbackTask } from '../callback-request.js';
import {
  defaultChannelLimits,
  HandlerChannels,
  type Channel,
  type ChannelLimits,
  type ChannelResult,
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

const ok: number = codes.OK;
const executePath = `/${Handler.typeName}/${Handler.method.execute.name}`;
const serialize = (request: ExecuteRequest) => Buffer.from(toBinary(ExecuteRequestSchema, request));
const deserialize = (bytes: Buffer) => fromBinary(ExecuteResponseSchema, bytes);

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
    const opened = await this.#open(parsed.target, verdict.policy, params);
    if (opened === 'ABORTED') return failed('ABORTED', 'The call was aborted');
    if (opened === 'TIMEOUT') {
      return failed('TIMEOUT', `No address within ${params.timeoutMs} ms`);
    }
    if (opened.kind === 'unknown_host') return failed('DNS_FAILURE', opened.message);
    if (opened.kind === 'blocked') {
      return failed('TARGET_BLOCKED', opened.message, opened.address);
    }
    const { channel } = opened;
    try {
      const ended = await this.#call(channel, task, params);
      const durationMs = elapsed();
      if ('failure' in ended) {
        return failed(ended.failure, ended.message, ended.remoteIp ?? channel.addresses[0]);
      }
      const facts = { httpStatus: null, remoteIp: ended.remoteIp ?? null };
      return evaluated(facts, () => ({ ...answerOf(ended, callback.keep_result), durationMs }));
    } finally {
      this.#channels.release(channel);
    }
  }

  close(): void {
    this.#channels.close();
  }

  /** A name server that does not answer takes no longer than the call may. */
  #open(
    target: Target,
    policy: AddressPolicy,
    { timeoutMs, signal }: CallbackParams,
  ): Promise<ChannelResult | 'TIMEOUT' | 'ABORTED'> {
    const opening = this.#channels.open(target, policy);
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (result: ChannelResult | 'TIMEOUT' | 'ABORTED') => {
        isOver = true;
        timer.cancel();
        signal?.removeEventListener('abort', abort);
        resolve(result);
      };
      const abort = () => end('ABORTED');
      const timer = this.#clock.after(timeoutMs, () => end('TIMEOUT'));
      signal?.addEventListener('abort', abort);
      opening.then((result) => {
        if (!isOver) end(result);
        else if (result.kind === 'open') this.#channels.release(result.channel);
      }, reject);
    });
  }

  #call(channel: Channel, task: CallbackTask, params: CallbackParams): Promise<Ended> {
    const { timeoutMs, signal, config } = params;
    const { connect_timeout_ms: connectMs } = config.callback;
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve({ failure: 'ABORTED', message: 'The call was aborted' });
      let stopped: { failure: FailureType; message: string } | undefined;
      const stop = (failure: FailureType, message: string) => {
        stopped ??= { failure, message };
        call.cancel();
      };
      const call: ClientUnaryCall = channel.client.makeUnaryRequest(
        executePath,
        serialize,
        deserialize,
        executeRequest(task, params),
        metadataOf(task, params),
        // The handler sees it too.
        { deadline: params.now + timeoutMs },
        (error, answer) => {
          connecting.cancel();
          signal?.removeEventListener('abort', abort);
          const remoteIp = peerIp(call);
          if (stopped) resolve({ ...stopped, remoteIp });
          else if (error) resolve(ofError(error, remoteIp));
          else resolve({ answer: answer!, remoteIp });
        },
      );
      const abort = () => stop('ABORTED', 'The call was aborted');
      const connecting = this.#clock.after(connectMs, () => {
        const state = channel.client.getChannel().getConnectivityState(false);
        if (state === connectivityState.READY) return;
        stop('TIMEOUT', `No connection within ${connectMs} ms`);
      });
      signal?.addEventListener('abort', abort);
    });
  }
}

type Ended =
  | { failure: FailureType; message: string; remoteIp?: string | undefined }
  | { status: { code: number; message: string }; remoteIp: string | undefined }
  | { answer: ExecuteResponse; remoteIp: string | undefined };

/** The library reports a connection that failed as UNAVAILABLE, with the cause in its text. */
const transportFailures: readonly [RegExp, FailureType][] = [
  [/\bECONNREFUSED\b/, 'CONNECTION_REFUSED'],
  [/\b(?:ECONNRESET|EPIPE)\b|^Connection dropped$/, 'CONNECTION_RESET'],
  [/certificate|\bERR_(?:SSL|TLS)_|SSL routines/, 'TLS_FAILURE'],
];

function ofError({ code, details }: ServiceError, remoteIp: string | undefined): Ended {
  if (code === codes.UNAVAILABLE) {
    const known = transportFailures.find(([pattern]) => pattern.test(details));
    if (known) return { failure: known[1], message: details, remoteIp };
  }
  return { status: { code, message: details }, remoteIp };
}

function answerOf(
  ended: Exclude<Ended, { failure: FailureType }>,
  keepsResult: boolean,
): Omit<GrpcAnswer, 'durationMs'> {
  const remoteIp = ended.remoteIp ?? null;
  if ('status' in ended) {
    const outcome = executeOutcome({ ...ended.status, retryAfterMs: null, remoteIp });
    return { outcome, stored: undefined };
  }
  const { status, result, retryAfter } = ended.answer;
  const code = status?.code ?? ok;
  const message = status?.message ?? '';
  const retryAfterMs = retryAfter ? Math.ceil(msOf(retryAfter)) : null;
  const outcome = executeOutcome({ code, message, retryAfterMs, remoteIp });
  const isStored = keepsResult && code === ok;
  return { outcome, stored: isStored ? executeResult(result) : undefined };
}

function peerIp(call: ClientUnaryCall): string | undefined {
  const [, ip] = /^\[?([^\]]+)\]?:\d+$/.exec(call.getPeer()) ?? [];
  return ip;
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
function metadataOf(task: CallbackTask, params: CallbackParams): Metadata {
  const metadata = new Metadata();
  const headers = callbackHeaders({ ...task, headers: {} }, params);
  for (const [name, value] of Object.entries(headers)) {
    if (!ownNames.has(name.toLowerCase())) metadata.set(name, value);
  }
  return metadata;
}
