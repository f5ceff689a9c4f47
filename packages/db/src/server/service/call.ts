import type { MessageShape } from '@bufbuild/protobuf';
import type { Database as Api, DbMethod, dbMethods, Filter } from '@millrace/contract/db';
import type { Principal } from '../access/principal.js';
import type { RecordWriter } from './found-records.js';

type Method<Rpc extends DbMethod> = (typeof Api.method)[Uncapitalize<Rpc>];
export type RequestMessage<Rpc extends DbMethod> = MessageShape<Method<Rpc>['input']>;
export type ResponseMessage<Rpc extends DbMethod> = MessageShape<Method<Rpc>['output']>;

export type StreamingRpc = {
  [Rpc in DbMethod]: (typeof dbMethods)[Rpc]['streaming'] extends true ? Rpc : never;
}[DbMethod];
export type UnaryRpc = Exclude<DbMethod, StreamingRpc>;

/**
 * A request to the service: the message, with filters as plain JSON, which the engine validates.
 */
export type Request<Rpc extends DbMethod> = {
  [Field in Exclude<keyof RequestMessage<Rpc>, '$typeName' | '$unknown'>]: NonNullable<
    RequestMessage<Rpc>[Field]
  > extends Filter
    ? unknown
    : RequestMessage<Rpc>[Field];
};

/** Work that can be aborted. */
export interface Abortable {
  /** Aborted with a refusal on cancellation, deadline or server shutdown. */
  readonly signal: AbortSignal;
  /** Throws that refusal. Prefer it to `signal`, which is created on first use and expensive. */
  throwIfAborted(): void;
}

/** Caller, deadline and cancellation of a call. */
export interface CallContext extends Abortable {
  readonly principal: Principal;
  /** Milliseconds since the epoch; undefined: no deadline. */
  readonly deadline: number | undefined;
  /** For logs. */
  readonly peer: string;
  /** Encodes found records directly as JSON or protobuf; undefined: records are messages. */
  readonly recordWriter?: (() => RecordWriter) | undefined;
}

export type UnaryMethods = {
  [Rpc in UnaryRpc]: (
    request: Request<Rpc>,
    context: CallContext,
  ) => Promise<ResponseMessage<Rpc>> | ResponseMessage<Rpc>;
};

/** A stream that can be polled without waiting. */
export interface Pollable<Answer> {
  /** The next message if one is ready; undefined: use `next()`. */
  poll(): Answer | undefined;
}

/** A method throws refusals that are known before the response begins. */
export type StreamingMethods = {
  [Rpc in StreamingRpc]: (
    request: Request<Rpc>,
    context: CallContext,
  ) => Promise<AsyncIterable<ResponseMessage<Rpc>>> | AsyncIterable<ResponseMessage<Rpc>>;
};

/** All methods, independent of the protocol; gRPC and REST both call these. */
export type Service = UnaryMethods & StreamingMethods;
