import type { DbMethod } from '@millrace/contract/db';
import { local, type Principal } from '../access/principal.js';
import type { CallContext } from '../service/call.js';
import type { RecordWriter } from '../service/found-records.js';

export type ApiKind = 'grpc' | 'rest';

export interface ScopeOptions {
  rpc: DbMethod;
  api: ApiKind;
  peer: string;
  /** Milliseconds since the epoch; undefined: no deadline. */
  deadline: number | undefined;
  /** On the monotonic clock. */
  startedAt: number;
}

/** Abort reason of a call that completed. */
export const callEnded = new Error('The call is over');

/** One call, from its first byte to the end of its response. */
export class CallScope implements CallContext {
  readonly rpc: DbMethod;
  readonly api: ApiKind;
  readonly peer: string;
  readonly deadline: number | undefined;
  readonly startedAt: number;
  principal: Principal = local;
  isEnded = false;
  /** A follower's stream: it stays open until all other calls have ended. */
  isFollower = false;
  /** Repeats the access check. */
  recheck: (() => void) | undefined;
  recordWriter: (() => RecordWriter) | undefined;
  #controller: AbortController | undefined;
  #aborted: { reason: unknown } | undefined;

  constructor(options: ScopeOptions) {
    this.rpc = options.rpc;
    this.api = options.api;
    this.peer = options.peer;
    this.deadline = options.deadline;
    this.startedAt = options.startedAt;
  }

  /** Created lazily: most calls end before anyone needs the signal. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#aborted.reason;
  }

  /** Aborts the call. Only the first reason counts. */
  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = { reason };
    this.#controller?.abort(reason);
  }
}
