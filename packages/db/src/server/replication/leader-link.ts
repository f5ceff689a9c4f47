import {
  Database,
  DataEncoding,
  type ReplicationStatusResponse,
  type WatchResponse,
} from '@millrace/contract/db';
import type { Clock } from '@millrace/kit/clock';
import type { Random } from '@millrace/kit/random';
import { toPart } from '../../client/catalog.js';
import { Backoff } from '@millrace/kit/backoff';
import { retryPolicy, Session } from '../../client/session.js';
import type { TlsOptions } from '../../client/transport.js';
import type { BackupPart } from '@millrace/engine/maintain/backup/frames';
import { Refusal, messageOf } from '@millrace/kit/errors';
import type { PeerFields } from './refusals.js';
import type { Log } from '@millrace/kit/log';

const { method: rpc } = Database;

/** Heartbeat interval of the leader's stream, and the timeout without any message. */
const heartbeat = { seconds: 0n, nanos: 500_000_000 };
const silenceMs = 5_000;
const copySilenceMs = 30_000;

interface LinkOptions {
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

interface LeaderNotifierParts {
  link: LeaderLink;
  clock: Clock;
  random: Random;
  log: Log;
  self: () => PeerFields;
  onReply: (answer: LeaderReply) => void;
}

/** Response of the old leader. */
export interface LeaderReply {
  /** The highest epoch it knows. */
  epoch: number;
  role: string;
  /** Address of the leader of that epoch. */
  leader: string;
  /** Another node than this one leads. */
  isOther: boolean;
}

/** Notifies the old leader of a promotion, with retries until it responds. */
export class LeaderNotifier {
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor(private readonly parts: LeaderNotifierParts) {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.parts.link.close();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const { clock, link, log, random } = this.parts;
    const backoff = new Backoff(retryPolicy, random);
    let lastProblem = '';
    while (!signal.aborted) {
      const problem = await this.#notify();
      if (problem === undefined || signal.aborted) return;
      if (problem !== lastProblem) {
        log.warn({ old_leader: link.url, problem }, 'failed to notify old leader');
      }
      lastProblem = problem;
      await clock.sleep(backoff.next(), signal).catch(() => undefined);
    }
  }

  /** Returns the problem; undefined on success. */
  async #notify(): Promise<string | undefined> {
    const { link, self, onReply } = this.parts;
    try {
      const peer = self();
      const { epoch, role, leaderAddress } = await link.status(peer, this.#stop.signal);
      if (role === 'leader' && epoch < peer.epoch) return 'it still leads';
      const leader = leaderAddress;
      onReply({ epoch: Number(epoch), role, leader, isOther: epoch > peer.epoch });
      return undefined;
    } catch (error) {
      const other = otherLeaderIn(error);
      if (other) {
        const { epoch, address } = other;
        onReply({ epoch, role: 'fenced', leader: address, isOther: true });
        return undefined;
      }
      if (!isRefusal(error, 'LINEAGE_MISMATCH')) return messageOf(error);
      // Another database runs at that address now, so there is no old leader to notify.
      onReply({ epoch: 0, role: 'unknown', leader: '', isOther: false });
      return undefined;
    }
  }
}
