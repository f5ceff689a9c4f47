import {
  Database,
  DataEncoding,
  type ReplicationStatusResponse,
  type WatchResponse,
} from '@millrace/contract/db';
import type { Clock } from '@millrace/kit/clock';
import type { Random } from '@millrace/kit/random';
import { toPart } from '../../client/admin.js';
import { Session } from '../../client/session.js';
import type { TlsOptions } from '../../client/transport.js';
import type { BackupPart } from '@millrace/engine/maintain/backup/parts';
import { Refusal } from '@millrace/kit/errors';
import type { PeerFields } from './self.js';

const { method: rpc } = Database;

/** Heartbeat interval of the leader's stream, and the timeout without any message. */
const heartbeat = { seconds: 0n, nanos: 500_000_000 };
const silenceMs = 5_000;
const copySilenceMs = 30_000;

export interface LinkOptions {
  url: string;
  key: string | undefined;
  tls: TlsOptions;
  clock: Clock;
  random: Random;
}

/** Connection of a node to its leader. Every call carries the node's peer information. */
export class LeaderLink {
  readonly url: string;
  readonly #session: Session;

  constructor({ url, key, tls, clock, random }: LinkOptions) {
    this.url = url;
    this.#session = new Session(url, { key, tls, clock, random, retry: false });
  }

  status(peer: PeerFields, signal: AbortSignal, timeoutMs: number = silenceMs) {
    const request = { peer };
    const answer: Promise<ReplicationStatusResponse> = this.#session.callOnce(
      rpc.replicationStatus,
      request,
      { timeoutMs, signal },
    );
    return answer;
  }

  /** Streams the commits after the peer's last one. */
  commits(peer: PeerFields, signal: AbortSignal): AsyncGenerator<WatchResponse, void, void> {
    const request = {
      peer,
      startSeq: peer.ackedSeq + 1n,
      heartbeat,
      encoding: DataEncoding.JSON,
    };
    return this.#session.streamOnce(rpc.watch, request, { signal, timeoutMs: silenceMs });
  }

  async *copy(peer: PeerFields, signal: AbortSignal): AsyncGenerator<BackupPart, void, void> {
    const options = { signal, timeoutMs: copySilenceMs };
    for await (const reply of this.#session.streamOnce(rpc.backup, { peer }, options)) {
      const part = toPart(reply);
      if (part) yield part;
    }
  }

  close(): Promise<void> {
    return this.#session.close();
  }
}

/** The new leader named in a FENCED refusal; undefined for other errors. */
export function otherLeaderIn(error: unknown): { epoch: number; address: string } | undefined {
  if (!(error instanceof Refusal) || error.code !== 'FENCED') return undefined;
  const { epoch = '0', leader = '' } = (error.extra.members?.['metadata'] ?? {}) as {
    epoch?: string;
    leader?: string;
  };
  return { epoch: Number(epoch), address: leader };
}

/** Whether the error is a refusal with this reason. */
export function isRefusal(error: unknown, code: string): boolean {
  return error instanceof Refusal && error.code === code;
}
