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
 * A request as the service takes it: the message, but for conditions, which are plain JSON. REST
 * has them as such, and the engine checks them.
 */
export type Request<Rpc extends DbMethod> = {
  [Field in Exclude<keyof RequestMessage<Rpc>, '$typeName' | '$unknown'>]: NonNullable<
    RequestMessage<Rpc>[Field]
  > extends Filter
    ? unknown
    : RequestMessage<Rpc>[Field];
};

/** Who calls, from where, and for how long they wait. */
export interface CallContext {
  readonly principal: Principal;
  /** Aborted with a refusal when the caller leaves, the deadline passes or the server ends. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch; undefined: none. */
  readonly deadline: number | undefined;
  /** For logs. */
  readonly peer: string;
  /** How the face writes records that are found as JSON; undefined: it takes messages. */
  readonly recordWriter?: (() => RecordWriter) | undefined;
}

export type UnaryMethods = {
  [Rpc in UnaryRpc]: (
    request: Request<Rpc>,
    context: CallContext,
  ) => Promise<ResponseMessage<Rpc>> | ResponseMessage<Rpc>;
};

/** A stream that can tell without waiting whether it has more to say. */
export interface Pollable<Answer> {
  /** The next message if it is there now; undefined: ask as one asks any stream. */
  poll(): Answer | undefined;
}

/** A method throws what it can refuse before its answer begins. */
export type StreamingMethods = {
  [Rpc in StreamingRpc]: (
    request: Request<Rpc>,
    context: CallContext,
  ) => Promise<AsyncIterable<ResponseMessage<Rpc>>> | AsyncIterable<ResponseMessage<Rpc>>;
};

/** The 20 methods, in neutral terms: both faces call these and nothing else. */
export type Service = UnaryMethods & StreamingMethods;
