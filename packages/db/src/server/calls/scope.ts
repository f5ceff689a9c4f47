import type { DbMethod } from '@millrace/contract/db';
import { local, type Principal } from '../access/principal.js';
import type { CallContext } from '../service/call.js';
import type { RecordWriter } from '../service/found-records.js';

export type Face = 'grpc' | 'rest';

export interface ScopeOptions {
  rpc: DbMethod;
  face: Face;
  peer: string;
  /** Milliseconds since the epoch; undefined: none. */
  deadline: number | undefined;
  /** On the monotonic clock. */
  startedAt: number;
}

/** Why a scope is aborted whose call ended by itself. */
export const callOver = new Error('The call is over');

/** One call from its first byte to the end of its answer. */
export class CallScope implements CallContext {
  readonly rpc: DbMethod;
  readonly face: Face;
  readonly peer: string;
  readonly deadline: number | undefined;
  readonly startedAt: number;
  principal: Principal = local;
  isOver = false;
  /** A follower streams by it: it stays until everything else is over. */
  isFollower = false;
  /** Looks once more whether the call may be made. */
  recheck: (() => void) | undefined;
  recordWriter: (() => RecordWriter) | undefined;
  #controller: AbortController | undefined;
  #aborted: { reason: unknown } | undefined;

  constructor(options: ScopeOptions) {
    this.rpc = options.rpc;
    this.face = options.face;
    this.peer = options.peer;
    this.deadline = options.deadline;
    this.startedAt = options.startedAt;
  }

  /** Made when it is asked for: most calls are over before anyone could end them. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  get isAborted(): boolean {
    return this.#aborted !== undefined;
  }

  /** Ends the work of the call. The first reason counts. */
  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = { reason };
    this.#controller?.abort(reason);
  }
}
