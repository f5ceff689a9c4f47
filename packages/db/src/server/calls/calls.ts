import type { DbMethod } from '@millrace/contract/db';
import type { Clock } from '@millrace/kit/clock';
import type { Authenticator, Credentials } from '../access/authenticator.js';
import type { Principal } from '../access/principal.js';
import { checkScope } from './check-scope.js';
import { refuse } from '@millrace/engine/value/refusal';
import type { Admission } from '../limits/admission.js';
import type { CallMetrics } from './call-metrics.js';
import type {
  Request,
  ResponseMessage,
  Service,
  StreamingRpc,
  StreamingMethods,
  UnaryMethods,
  UnaryRpc,
} from '../service/call.js';
import { statusOf, type CallStatus } from '../base/status.js';
import { callEnded, CallScope, type ApiKind } from './scope.js';

export interface CallParts {
  clock: Clock;
  authenticator: Authenticator;
  admission: Admission;
  callMetrics: CallMetrics;
  service: Service;
}

/** Authentication, authorization, admission and metrics of a call, for gRPC and REST. */
export class Calls {
  readonly #open = new Set<CallScope>();
  #draining = false;
  #onIdle: (() => void)[] = [];

  constructor(private readonly parts: CallParts) {}

  get isDraining(): boolean {
    return this.#draining;
  }

  open(rpc: DbMethod, api: ApiKind, peer: string, deadline: number | undefined): CallScope {
    const startedAt = this.parts.clock.monotonic();
    const scope = new CallScope({ rpc, api, peer, deadline, startedAt });
    this.#open.add(scope);
    return scope;
  }

  /** Records how long a call was queued before it started. */
  queued(delayMs: number): void {
    this.parts.admission.queued(delayMs);
  }

  /** Authenticates the caller. Refuses every call while the server shuts down. */
  checkCaller(rpc: DbMethod, credentials: Credentials): Principal {
    // Writes in flight may wait for the acks that followers report with this method.
    if (this.#draining && rpc !== 'ReplicationStatus') throw shuttingDown();
    return this.parts.authenticator.identify(credentials);
  }

  /** Like `checkCaller`, once the request is complete: the key may have been revoked meanwhile. */
  identify(scope: CallScope, credentials: Credentials): void {
    const { authenticator } = this.parts;
    scope.principal = this.checkCaller(scope.rpc, credentials);
    if (scope.rpc !== 'Watch' || !authenticator.needsKeys) return;
    scope.recheck = () => void (scope.principal = authenticator.identify(credentials));
  }

  /** Accepts a caller without a key, on a listener that only the owner can reach. */
  trust(): void {
    if (this.#draining) throw shuttingDown();
  }

  /** Runs a unary call. Returns the response directly when the method is synchronous. */
  unary<Rpc extends UnaryRpc>(
    scope: CallScope,
    rpc: Rpc,
    request: Request<Rpc>,
  ): Promise<ResponseMessage<Rpc>> | ResponseMessage<Rpc> {
    checkScope(scope.principal, rpc, request);
    const leave = this.parts.admission.enter(rpc);
    let answer: Promise<ResponseMessage<Rpc>> | ResponseMessage<Rpc>;
    try {
      const method: UnaryMethods[Rpc] = this.parts.service[rpc];
      answer = method(request, scope);
    } catch (error) {
      leave();
      throw error;
    }
    if (answer instanceof Promise) return leaveAfter(answer, leave);
    leave();
    return answer;
  }

  /** Runs a streaming call; `deliver` consumes its messages and may stop early. */
  async stream<Rpc extends StreamingRpc>(
    scope: CallScope,
    rpc: Rpc,
    request: Request<Rpc>,
    deliver: (messages: AsyncIterable<ResponseMessage<Rpc>>) => Promise<void>,
  ): Promise<void> {
    checkScope(scope.principal, rpc, request);
    this.#keepChecking(scope, rpc, request);
    scope.isFollower = 'peer' in request && request.peer !== undefined;
    const leave = this.parts.admission.enter(rpc, scope.isFollower);
    try {
      const method: StreamingMethods[Rpc] = this.parts.service[rpc];
      await deliver(await method(request, scope));
    } finally {
      leave();
      // Releases everything the method still holds for this call.
      scope.abort(callEnded);
    }
  }

  /** Ends a scope, when its response is complete or the caller is gone. */
  close(scope: CallScope, status?: CallStatus): void {
    if (scope.isEnded) return;
    scope.isEnded = true;
    this.#open.delete(scope);
    this.parts.callMetrics.record(scope, status);
    if (this.#onIdle.length === 0 || !this.#isIdle()) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** The status to send for an error. Internal errors are logged in full. */
  explain(scope: CallScope, error: unknown): CallStatus {
    const status = statusOf(error);
    return status.isBug ? this.parts.callMetrics.recordInternalError(scope, error, status) : status;
  }

  /** Ends watches whose key was revoked, has expired or has lost its scope. */
  recheckWatches(): void {
    for (const scope of this.#open) {
      try {
        scope.recheck?.();
      } catch (refusal) {
        scope.abort(refusal);
      }
    }
  }

  #keepChecking<Rpc extends StreamingRpc>(scope: CallScope, rpc: Rpc, request: Request<Rpc>): void {
    const identify = scope.recheck;
    if (!identify) return;
    scope.recheck = () => {
      identify();
      checkScope(scope.principal, rpc, request);
    };
  }

  /** Refuses new calls and ends watches, which would otherwise never end. */
  beginDrain(): void {
    this.#draining = true;
    for (const scope of this.#open) {
      if (scope.rpc === 'Watch' && !scope.isFollower) scope.abort(shuttingDown());
    }
  }

  /** Resolves when only calls of followers are in flight. */
  async idle(): Promise<void> {
    if (this.#isIdle()) return;
    await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #isIdle(): boolean {
    for (const { isFollower } of this.#open) if (!isFollower) return false;
    return true;
  }

  /** Aborts all calls in flight. */
  cut(): void {
    for (const scope of this.#open) scope.abort(shuttingDown());
  }
}

/** Avoids `await`, whose extra microtasks cost more than the work itself on this hot path. */
function leaveAfter<Answer>(answer: Promise<Answer>, leave: () => void): Promise<Answer> {
  return answer.then(
    (given) => {
      leave();
      return given;
    },
    (error: unknown) => {
      leave();
      throw error;
    },
  );
}

function shuttingDown(): Error {
  return refuse('SHUTTING_DOWN', 'The server is shutting down. Retry when it is back.');
}
