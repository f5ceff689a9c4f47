import type { MessageShape } from '@bufbuild/protobuf';
import type { Database as Api, DbMethod, dbMethods, Filter, Record } from '@millrace/contract/db';
import type { Principal } from '../access/access.js';
import type { JsonObject } from '@millrace/engine/value/documents';
import type { Projection } from '@millrace/engine/query/query';
import type { Hit, RecordSink } from '@millrace/engine/query/page';
import type { RecordImage } from '@millrace/engine/format/record';
import { recordMessage } from './records.js';

type Method<Rpc extends DbMethod> = (typeof Api.method)[Uncapitalize<Rpc>];
type RequestMessage<Rpc extends DbMethod> = MessageShape<Method<Rpc>['input']>;
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

/** Encodes records directly from their stored bytes, without a message for each. */
export interface RecordWriter {
  /** `parts`: the projected document; undefined: the whole document. `commit`: the seq to show. */
  add(image: RecordImage, parts: JsonObject | undefined, commit: number): void;
  /** Returns everything added since the last call. */
  take(): object;
}

/** The records of a message: as messages, or already encoded. */
export interface FoundRecords {
  readonly records: Record[];
  readonly written?: object;
}

/** How records are presented. */
interface RecordView {
  /** Bodies as JSON bytes instead of structs. */
  readonly json: boolean;
  /** Projection of the documents; undefined: whole documents. */
  readonly project: Projection | undefined;
  /** Ids of records that the transaction has written and not committed. */
  readonly own: { has(id: string): boolean } | undefined;
}

/** Creates a message for each record. */
export class MessageSink implements RecordSink<FoundRecords> {
  #records: Record[] = [];

  constructor(private readonly view: RecordView) {}

  add(image: RecordImage, hit?: Hit, parts?: JsonObject): void {
    const { json, project, own } = this.view;
    const copy = image.keep();
    const seq = own?.has(copy.id) ? 0 : undefined;
    const data = parts ?? project?.(copy);
    this.#records.push(recordMessage(copy, { json, data, seq, hit }));
  }

  take(): FoundRecords {
    const records = this.#records;
    this.#records = [];
    return { records };
  }
}

/** Passes each record to a record writer. */
export class WritingSink implements RecordSink<FoundRecords> {
  constructor(
    private readonly writer: RecordWriter,
    private readonly view: RecordView,
  ) {}

  add(image: RecordImage, _hit?: Hit, parts?: JsonObject): void {
    const { project, own } = this.view;
    const commit = own?.has(image.id) ? 0 : image.seq;
    this.writer.add(image, parts ?? project?.(image), commit);
  }

  take(): FoundRecords {
    return { records: [], written: this.writer.take() };
  }
}

/** A stream that can push messages to a sink while its reader waits. */
export interface PushSource<Answer> {
  pushTo(sink: PushSink<Answer>): void;
}

export interface PushSink<Answer> {
  /** False: the sink accepts nothing now; messages go to the reader, which waits for room. */
  hasRoom(): boolean;
  /** Consecutive messages. The array is shared between streams; do not modify it. */
  take(answers: readonly Answer[]): void;
}
