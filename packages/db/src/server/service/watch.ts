import {
  ChangeOp,
  WatchKind,
  type Change,
  type Peer,
  type RequestResult,
  type WatchResponse,
} from '@millrace/contract/db';
import { hashToBigInt } from '@millrace/engine/value/bytes';
import { compilePredicate } from '@millrace/engine/value/predicate';
import { checkFind } from '@millrace/engine/query/query';
import type { RecordImage, RequestResult as StoredResult } from '@millrace/engine/format/record';
import type { VisibleChange, WatchMessage } from '@millrace/engine/watch/message';
import type { Watch } from '@millrace/engine/watch/watch';
import type {
  CallContext,
  Pollable,
  Request,
  StreamingMethods,
  PushSource,
  PushSink,
} from './call.js';
import {
  computeOnce,
  recordMessage,
  removedRecord,
  badField,
  durationMs,
  timestamp,
  wantsJson,
  wholeNumber,
} from './records.js';
import type { ServiceParts } from './parts.js';

const kinds: Record<WatchMessage['kind'], WatchKind> = {
  changes: WatchKind.CHANGES,
  initial: WatchKind.INITIAL,
  initial_end: WatchKind.INITIAL_END,
  bookmark: WatchKind.BOOKMARK,
};

const ops: Record<VisibleChange['op'], ChangeOp> = {
  insert: ChangeOp.INSERT,
  update: ChangeOp.UPDATE,
  delete: ChangeOp.DELETE,
  expire: ChangeOp.EXPIRE,
};

export function watchMethod(parts: ServiceParts): StreamingMethods['Watch'] {
  const open = (request: Request<'Watch'>, context: CallContext) => {
    const { condition, project } = checkFind({
      filter: request.filter ?? undefined,
      fields: request.fields,
    });
    const watch = parts.database.watches.open<Change>({
      collection: request.collection === '' ? undefined : request.collection,
      filter: condition.kind === 'all' ? undefined : compilePredicate(condition),
      includeSystem: request.peer !== undefined,
      resumeToken: request.resumeToken,
      startSeq: wholeNumber(request.startSeq, 'start_seq'),
      includeInitial: request.includeInitial,
      heartbeatMs: durationMs(request.heartbeat, 'heartbeat'),
      signal: context.signal,
      show: changeShower(request, project),
      shareKey: shareKeyOf(request),
      includeEmpty: request.peer !== undefined,
      includeResults: request.peer !== undefined,
    });
    return new WatchStream(watch, context.signal);
  };
  return (request, context) => {
    const { peer } = request;
    return peer ? followed(parts, peer, request, context, open) : open(request, context);
  };
}

type OpenWatch = (request: Request<'Watch'>, context: CallContext) => WatchStream;

/** The watch of a follower: everything after its last commit. */
async function followed(
  { replication }: ServiceParts,
  peer: Peer,
  request: Request<'Watch'>,
  context: CallContext,
  open: OpenWatch,
) {
  if (request.collection !== '') throw badField('collection', 'must be empty with peer');
  if (request.startSeq !== peer.ackedSeq + 1n) {
    throw badField('start_seq', 'must be the commit after the acked_seq of peer');
  }
  await replication.handlePeer(peer, 'Watch', context);
  return open(request, context);
}

/** Watches with equal keys share messages. */
function shareKeyOf(request: Request<'Watch'>): string {
  const { collection, filter = null, fields, encoding, includeBefore } = request;
  const isPeer = request.peer !== undefined;
  return JSON.stringify([collection, filter, fields, wantsJson(encoding), includeBefore, isPeer]);
}

/** The responses of a watch; watches with the same view share response objects. */
class WatchStream
  implements
    AsyncIterableIterator<WatchResponse>,
    Pollable<WatchResponse>,
    PushSource<WatchResponse>
{
  constructor(
    private readonly watch: Watch<Change>,
    private readonly signal: AbortSignal,
  ) {}

  async next(): Promise<IteratorResult<WatchResponse, undefined>> {
    const step = await this.watch.next();
    if (!step.done) return { done: false, value: sharedResponse(step.value) };
    // The engine ends a watch without an error; the signal has the reason.
    this.signal.throwIfAborted();
    return { done: true, value: undefined };
  }

  poll(): WatchResponse | undefined {
    const message = this.watch.poll();
    return message && sharedResponse(message);
  }

  pushTo(sink: PushSink<WatchResponse>): void {
    this.watch.pushTo({
      hasRoom: () => sink.hasRoom(),
      take: (messages) => sink.take(computeOnce(messages, rowOf)),
    });
  }

  async return(): Promise<IteratorResult<WatchResponse, undefined>> {
    await this.watch.return();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

function sharedResponse(message: WatchMessage<Change>): WatchResponse {
  return computeOnce(message, watchResponse);
}

function rowOf(messages: readonly WatchMessage<Change>[]): readonly WatchResponse[] {
  return messages.map(sharedResponse);
}

function changeShower(
  request: Request<'Watch'>,
  project: ReturnType<typeof checkFind>['project'],
): (change: VisibleChange) => Change {
  const json = wantsJson(request.encoding);
  const show = (image: RecordImage) => recordMessage(image, { json, data: project?.(image) });
  return ({ op, collection, id, seq, after, before, entered, left }) => {
    const change: Change = {
      $typeName: 'millrace.db.v1.Change',
      op: ops[op],
      collection,
      record: after ? show(after) : removedRecord(id, before?.key ?? '', before?.rev ?? 0, seq),
      entered,
      left,
    };
    if (request.includeBefore && before && op !== 'insert') change.before = show(before);
    return change;
  };
}

function watchResponse(message: WatchMessage<Change>): WatchResponse {
  const response: WatchResponse = {
    $typeName: 'millrace.db.v1.WatchResponse',
    kind: kinds[message.kind],
    seq: BigInt(message.seq),
    epoch: BigInt(message.epoch),
    changes: message.changes,
    resumeToken: message.resumeToken,
    leaderSeq: BigInt(message.leaderSeq),
    chainHash: hashToBigInt(message.chainHash),
    requestResults: (message.results ?? []).map(resultMessage),
  };
  if (message.committedAt) response.committedAt = timestamp(message.committedAt.getTime());
  return response;
}

function resultMessage({ key, value, expiresAt }: StoredResult): RequestResult {
  const expires = timestamp(expiresAt);
  return { $typeName: 'millrace.db.v1.RequestResult', key, value, expiresAt: expires };
}
