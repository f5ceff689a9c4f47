import type { DbMethod } from '@millrace/contract/db';
import type { Clock } from '@millrace/kit/clock';
import type { Gate, Credentials } from '../access/gate.js';
import type { Principal } from '../access/principal.js';
import { checkScope } from './check-scope.js';
import { refuse } from '../../engine/refusal.js';
import type { Admission } from '../limits/admission.js';
import type { CallLedger } from './ledger.js';
import type {
  Request,
  ResponseMessage,
  Service,
  StreamingRpc,
  StreamingMethods,
  UnaryMethods,
  UnaryRpc,
} from '../service/call.js';
import { statusOf, type CallStatus } from '../status.js';
import { callOver, CallScope, type Face } from './scope.js';

export interface CallParts {
  clock: Clock;
  gate: Gate;
  admission: Admission;
  ledger: CallLedger;
  service: Service;
}

/** What both faces do with a call: who makes it, may they, is there room, how did it end. */
export class Calls {
  readonly #open = new Set<CallScope>();
  #draining = false;
  #onIdle: (() => void)[] = [];

  constructor(private readonly parts: CallParts) {}

  get isDraining(): boolean {
    return this.#draining;
  }

  open(rpc: DbMethod, face: Face, peer: string, deadline: number | undefined): CallScope {
    const startedAt = this.parts.clock.monotonic();
    const scope = new CallScope({ rpc, face, peer, deadline, startedAt });
    this.#open.add(scope);
    return scope;
  }

  /** A call waited this long before it was begun. */
  queued(delayMs: number): void {
    this.parts.admission.queued(delayMs);
  }

  /** Refuses those who are not known, and everyone while the server shuts down. */
  checkCaller(rpc: DbMethod, credentials: Credentials): Principal {
    // Writes under way may wait for what followers report by this.
    if (this.#draining && rpc !== 'ReplicationStatus') throw shuttingDown();
    return this.parts.gate.identify(credentials);
  }

  /** As `checkCaller`, when the request is complete: the key may have been revoked meanwhile. */
  identify(scope: CallScope, credentials: Credentials): void {
    const { gate } = this.parts;
    scope.principal = this.checkCaller(scope.rpc, credentials);
    if (scope.rpc !== 'Watch' || !gate.needsKeys) return;
    scope.recheck = () => void (scope.principal = gate.identify(credentials));
  }

  /** For a listener that only the owner can reach. */
  trust(): void {
    if (this.#draining) throw shuttingDown();
  }

  /** Carries a unary call out; its answer comes at once where the method has it at once. */
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

  /** Carries a streaming call out; `deliver` takes its messages, or stops when it has enough. */
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
      // Whatever the method left open for this call hears of its end.
      scope.abort(callOver);
    }
  }

  /** To be called once for every scope, when its answer is complete or nobody waits for it. */
  close(scope: CallScope, status?: CallStatus): void {
    if (scope.isOver) return;
    scope.isOver = true;
    this.#open.delete(scope);
    this.parts.ledger.note(scope, status);
    if (this.#onIdle.length === 0 || !this.#isIdle()) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** What the caller is told of an error; a fault of ours is logged as a whole. */
  explain(scope: CallScope, error: unknown): CallStatus {
    const status = statusOf(error);
    return status.isBug ? this.parts.ledger.noteBug(scope, error, status) : status;
  }

  /** Ends watches whose key was revoked, has expired or no longer reaches so far. */
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

  /** From now on no call is taken; watches, which would never end, are told to. */
  beginDrain(): void {
    this.#draining = true;
    for (const scope of this.#open) {
      if (scope.rpc === 'Watch' && !scope.isFollower) scope.abort(shuttingDown());
    }
  }

  /** Resolves when no call is under way but those of followers. */
  async idle(): Promise<void> {
    if (this.#isIdle()) return;
    await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #isIdle(): boolean {
    for (const { isFollower } of this.#open) if (!isFollower) return false;
    return true;
  }

  /** Ends what is still under way. */
  cut(): void {
    for (const scope of this.#open) scope.abort(shuttingDown());
  }
}

/** Without await, here and in the methods of most calls: its steps cost more than what they do. */
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
  return refuse('SHUTTING_DOWN', 'The server is shutting down; try again when it is back.');
}
