import { timestampMs, type Timestamp } from '@bufbuild/protobuf/wkt';
import { type Change, type WatchResponse, WatchKind } from '@millrace/contract/db';
import { changeOps, toHash, decodeJson } from '../../client/records.js';
import type { JsonObject } from '@millrace/engine/value/documents';
import {
  DoesNotFit,
  type IncomingChange,
  type IncomingCommit,
  applyCommit,
} from '@millrace/engine/maintain/replica/apply-commit';
import type { Clock } from '@millrace/kit/clock';
import type { Core } from '@millrace/engine/core/core';
import { repeat } from '../base/status.js';
import type { FollowState } from './node-state.js';
import type { LeaderLink } from './leader-link.js';
import type { PeerFields } from './refusals.js';

/** Converts a message of the leader's watch to a commit. */
function incomingCommit(message: WatchResponse): IncomingCommit {
  const seq = Number(message.seq);
  return {
    seq,
    at: timeOf(message.committedAt),
    epoch: Number(message.epoch),
    leaderSeq: Number(message.leaderSeq),
    chain: toHash(message.chainHash),
    changes: message.changes.map((change) => incomingChange(change, seq)),
    results: message.requestResults.map(({ key, value, expiresAt }) => {
      return { key: Buffer.from(key), value: Buffer.from(value), expiresAt: timeOf(expiresAt) };
    }),
  };
}

function incomingChange(change: Change, seq: number): IncomingChange {
  const { collection, record } = change;
  const op = changeOps[change.op];
  if (!op || !record) throw new DoesNotFit(seq, 'it has a change of unknown kind');
  const isThere = op === 'insert' || op === 'update';
  return {
    op,
    collection,
    id: record.id,
    after: isThere
      ? {
          key: record.key,
          rev: Number(record.rev),
          createdAt: timeOf(record.createdAt),
          updatedAt: timeOf(record.updatedAt),
          expiresAt: timeOf(record.expiresAt),
          data: decodeJson(record.dataJson) as JsonObject,
        }
      : undefined,
  };
}

/** 0 when unset. */
function timeOf(time: Timestamp | undefined): number {
  return time ? timestampMs(time) : 0;
}

// Enough commits to share an fsync; beyond this, backpressure stops the leader.
const maxInFlight = 256;
const maxBytesInFlight = 32 * 2 ** 20;
const reportEveryMs = 1_000;

interface StreamParts {
  core: Core;
  link: LeaderLink;
  state: FollowState;
  clock: Clock;
  self: () => PeerFields;
  /** Called with the epoch of each message. */
  onEpoch: (epoch: number) => void;
  /** Whether this error of a status report ends the stream. */
  isFinal: (error: unknown) => boolean;
}

/**
 * Applies the leader's commit stream until it ends, and acknowledges commits once they are on disk.
 */
export class CommitStream {
  readonly #stop = new AbortController();
  readonly #inFlight = new Set<Promise<void>>();
  #failure: { error: unknown } | undefined;
  #reporting = false;
  #reportedSeq = -1;
  #bytesInFlight = 0;

  constructor(private readonly parts: StreamParts) {}

  /** Settles when the stream has ended and all its commits are applied. */
  async run(signal: AbortSignal): Promise<void> {
    const { core, link, clock, self, state } = this.parts;
    const onAbort = () => this.#stop.abort(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    const stopListening = core.onDurable(() => {
      state.check();
      this.#report();
    });
    const stopReporting = repeat(clock, reportEveryMs, () => this.#report(true));
    try {
      for await (const message of link.commits(self(), this.#stop.signal)) {
        await this.#take(message);
        if (this.#failure) break;
      }
    } catch (error) {
      this.#failure ??= { error };
    } finally {
      stopReporting();
      stopListening();
      signal.removeEventListener('abort', onAbort);
      this.#stop.abort();
      await Promise.allSettled(this.#inFlight);
    }
    if (this.#failure) throw this.#failure.error;
  }

  async #take(message: WatchResponse): Promise<void> {
    const { core, state, onEpoch } = this.parts;
    onEpoch(Number(message.epoch));
    if (message.kind === WatchKind.CHANGES) {
      const bytes = message.changes.reduce((sum, { record }) => sum + recordBytes(record), 0);
      const applied = applyCommit(core, incomingCommit(message))
        .catch((error: unknown) => this.#fail(error))
        .then(() => {
          this.#inFlight.delete(applied);
          this.#bytesInFlight -= bytes;
        });
      this.#inFlight.add(applied);
      this.#bytesInFlight += bytes;
    }
    state.onLeaderSeq(Number(message.leaderSeq));
    while (this.#inFlight.size >= maxInFlight || this.#bytesInFlight > maxBytesInFlight) {
      await Promise.race(this.#inFlight);
    }
  }

  /** Reports the last commit on disk to the leader, one report at a time. */
  #report(isDue = false): void {
    const { core, link, state, self, onEpoch } = this.parts;
    const { seq } = core.durable;
    if (this.#reporting || this.#stop.signal.aborted) return;
    if (!isDue && seq === this.#reportedSeq) return;
    this.#reporting = true;
    this.#reportedSeq = seq;
    link.status(self(), this.#stop.signal).then(
      (leader) => {
        this.#reporting = false;
        onEpoch(Number(leader.epoch));
        state.onLeaderSeq(Math.max(Number(leader.durableSeq), core.durable.seq));
        this.#report();
      },
      (error: unknown) => {
        this.#reporting = false;
        if (this.parts.isFinal(error)) this.#fail(error);
      },
    );
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#stop.abort(error);
  }
}

function recordBytes(record: { dataJson: Uint8Array } | undefined): number {
  return record?.dataJson.length ?? 0;
}
