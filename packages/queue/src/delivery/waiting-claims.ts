import type { ClaimedTask } from '../core/outcome.js';
import type { WholeTask } from '../core/task.js';

/** A request of a worker for tasks. */
export interface WorkerIdentity {
  worker: string;
  principal: string;
  /** Null: in process. */
  remoteIp: string | null;
}

export interface PullRequest extends WorkerIdentity {
  limit: number;
  waitMs: number;
  leaseMs: number;
  /** Only tasks for these handlers; absent: any. */
  handlers?: readonly string[] | undefined;
  /** Only tasks all of whose labels are among these; absent: tasks without labels. */
  labels?: readonly string[] | undefined;
  /** Aborted when the client disconnects. */
  signal?: AbortSignal | undefined;
  /** True while the client reads too slowly to get more tasks. */
  isCongested?: (() => boolean) | undefined;
}

export type PulledTask = WholeTask & ClaimedTask;

let claimCount = 0;

/** A claim that waits for its first task. */
export class WaitingClaim {
  /** Claims with the same filter and lease can be served by one claim of the store. */
  readonly kind: string;
  /** Of one set of labels; claims with others find other tasks. */
  readonly labels: string;
  readonly #end: (tasks: readonly PulledTask[]) => void;
  /** In the order of arrival. */
  readonly number = ++claimCount;
  isOver = false;
  #isBeingServed = false;
  #isWaitOver: boolean;

  constructor(
    readonly request: PullRequest,
    /** Identifies the worker in lease tokens. */
    readonly workerKey: string,
    end: (tasks: readonly PulledTask[]) => void,
  ) {
    const { handlers, labels = [], leaseMs } = request;
    this.labels = labels.length === 0 ? '' : JSON.stringify(labels.toSorted());
    this.kind = JSON.stringify([leaseMs, handlers?.toSorted(), this.labels]);
    this.#end = end;
    this.#isWaitOver = request.waitMs === 0;
  }

  get isWaitOver(): boolean {
    return this.#isWaitOver && !this.#isBeingServed;
  }

  /** The store is claiming for it. */
  beginServing(): void {
    this.#isBeingServed = true;
  }

  /** `isAnswered`: the store had nothing more for it. */
  endServing(isAnswered: boolean): void {
    this.#isBeingServed = false;
    if (isAnswered && this.#isWaitOver) this.end([]);
  }

  /** Ends it, or lets a claim of the store that runs for it be the last. */
  endWait(): void {
    this.#isWaitOver = true;
    if (!this.#isBeingServed) this.end([]);
  }

  end(tasks: readonly PulledTask[]): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#end(tasks);
  }
}

const maxDrained = 1_000;

/** Waiting claims that find the same tasks, in the order of their arrival. */
interface ClaimGroup {
  readonly kind: string;
  readonly handlers: readonly string[] | undefined;
  readonly claims: Set<WaitingClaim>;
}

/**
 * The waiting claims of one queue, by their labels: what one claim finds says nothing about claims
 * with other labels.
 */
export class WaitingClaims {
  readonly #byLabels = new Map<string, ClaimSet>();
  /** Kinds of claims for which the store had too few tasks, and no work came since. */
  readonly #drained = new Set<string>();

  get hasClaims(): boolean {
    return this.#byLabels.size > 0;
  }

  countOf(principal: string): number {
    let count = 0;
    for (const set of this.#byLabels.values()) count += set.countOf(principal);
    return count;
  }

  /** False: it waits for work to come. One that does not wait is always tried. */
  add(claim: WaitingClaim): boolean {
    let set = this.#byLabels.get(claim.labels);
    if (!set) this.#byLabels.set(claim.labels, (set = new ClaimSet()));
    const isLive = claim.isWaitOver || !this.#drained.has(claim.kind);
    set.add(claim, isLive);
    return isLive;
  }

  remove(claim: WaitingClaim): void {
    const set = this.#byLabels.get(claim.labels);
    set?.remove(claim);
    if (set && !set.hasClaims) this.#byLabels.delete(claim.labels);
  }

  /** There may be work again for these handlers; undefined: for all. */
  wake(handlers?: ReadonlySet<string>): void {
    if (handlers?.size !== 0) this.#drained.clear();
    for (const set of this.#byLabels.values()) set.wake(handlers);
  }

  /** The store had too few tasks for claims of this filter. */
  drained(claim: WaitingClaim): void {
    if (this.#drained.size < maxDrained) this.#drained.add(claim.kind);
    this.#byLabels.get(claim.labels)?.drained(claim);
  }

  /** Whether a claim of the store could find tasks for one of them. */
  get canBeServed(): boolean {
    for (const set of this.#byLabels.values()) if (set.canBeServed) return true;
    return false;
  }

  /** Claims that can be served by one claim of the store of about `maxTasks`. */
  nextAlike(maxTasks: number): WaitingClaim[] {
    // A map may lose the current entry while it is iterated.
    for (const set of this.#byLabels.values()) {
      const alike = set.nextAlike(maxTasks);
      if (alike.length > 0) return alike;
    }
    return [];
  }

  /** Claims of this kind got tasks: others go first the next time. */
  served(claim: WaitingClaim): void {
    const set = this.#byLabels.get(claim.labels);
    set?.served(claim);
    if (!set || this.#byLabels.size === 1) return;
    this.#byLabels.delete(claim.labels);
    this.#byLabels.set(claim.labels, set);
  }

  /** Nothing can be claimed now: ends the claims that do not wait. */
  endUnservable(): void {
    for (const set of this.#byLabels.values()) set.endUnservable();
  }

  /** Ends all of them without tasks. */
  end(): void {
    for (const set of this.#byLabels.values()) set.end();
  }
}

/**
 * Waiting claims with the same labels. A claim of the store that comes short shows that its handlers
 * have no more due tasks, so only handlers that got work since then are tried again.
 */
class ClaimSet {
  readonly #groups = new Map<string, ClaimGroup>();
  /** Groups with a filter, by each handler that it names. */
  readonly #byHandler = new Map<string, Set<ClaimGroup>>();
  readonly #unfiltered = new Set<ClaimGroup>();
  readonly #byPrincipal = new Map<string, number>();
  /** Handlers with waiting claims that may have tasks. */
  readonly #live = new Set<string>();
  /** Whether there may be tasks for claims without a filter. */
  #isLive = false;

  countOf(principal: string): number {
    return this.#byPrincipal.get(principal) ?? 0;
  }

  get hasClaims(): boolean {
    return this.#groups.size > 0;
  }

  add(claim: WaitingClaim, isLive: boolean): void {
    const { principal, handlers } = claim.request;
    this.#byPrincipal.set(principal, this.countOf(principal) + 1);
    const known = this.#groups.get(claim.kind);
    if (known) return void known.claims.add(claim);
    const group = { kind: claim.kind, handlers, claims: new Set([claim]) };
    this.#groups.set(claim.kind, group);
    if (!handlers) {
      this.#unfiltered.add(group);
      if (isLive) this.#isLive = true;
      return;
    }
    for (const handler of handlers) {
      const groups = this.#byHandler.get(handler);
      if (groups) groups.add(group);
      else this.#byHandler.set(handler, new Set([group]));
      if (isLive) this.#live.add(handler);
    }
  }

  remove(claim: WaitingClaim): void {
    const group = this.#groups.get(claim.kind);
    if (!group?.claims.delete(claim)) return;
    const { principal } = claim.request;
    const left = this.countOf(principal) - 1;
    if (left > 0) this.#byPrincipal.set(principal, left);
    else this.#byPrincipal.delete(principal);
    if (group.claims.size > 0) return;
    this.#groups.delete(group.kind);
    this.#unfiltered.delete(group);
    for (const handler of group.handlers ?? []) {
      const groups = this.#byHandler.get(handler);
      groups?.delete(group);
      if (groups?.size !== 0) continue;
      this.#byHandler.delete(handler);
      this.#live.delete(handler);
    }
  }

  /** There may be work again for these handlers; undefined: for all. */
  wake(handlers?: ReadonlySet<string>): void {
    if (handlers?.size !== 0) this.#isLive = true;
    for (const handler of handlers ?? this.#byHandler.keys()) {
      if (this.#byHandler.has(handler)) this.#live.add(handler);
    }
  }

  /** The store had too few tasks for claims of this filter. */
  drained({ request: { handlers } }: WaitingClaim): void {
    if (handlers) return handlers.forEach((handler) => this.#live.delete(handler));
    this.#live.clear();
    this.#isLive = false;
  }

  /** Whether a claim of the store could find tasks for one of them. */
  get canBeServed(): boolean {
    return this.#next() !== undefined;
  }

  /** Claims that can be served by one claim of the store of about `maxTasks`. */
  nextAlike(maxTasks: number): WaitingClaim[] {
    const alike: WaitingClaim[] = [];
    for (let group = this.#next(); group && alike.length === 0; group = this.#next()) {
      let wanted = 0;
      for (const claim of group.claims) {
        if (claim.request.isCongested?.()) {
          claim.end([]);
          continue;
        }
        alike.push(claim);
        wanted += claim.request.limit;
        if (wanted >= maxTasks) break;
      }
    }
    return alike;
  }

  /**
   * Claims of this kind got tasks: lets those that share a handler with them go first the next
   * time. Not when they got none, or one that hands all its tasks back could be first every time.
   */
  served({ kind }: WaitingClaim): void {
    const group = this.#groups.get(kind);
    if (!group) return;
    const sets = group.handlers?.map((handler) => this.#byHandler.get(handler)!);
    for (const groups of sets ?? [this.#unfiltered]) {
      groups.delete(group);
      groups.add(group);
    }
  }

  /** Nothing can be claimed now: ends the claims that do not wait. */
  endUnservable(): void {
    for (const claim of this.#all()) if (claim.isWaitOver) claim.end([]);
  }

  /** Ends all of them without tasks. */
  end(): void {
    for (const claim of this.#all()) claim.end([]);
  }

  *#all(): Generator<WaitingClaim> {
    for (const { claims } of this.#groups.values()) yield* claims;
  }

  /** The group to serve next: of those with and without a filter, the one that waits longer. */
  #next(): ClaimGroup | undefined {
    const unfiltered = this.#isLive ? firstOf(this.#unfiltered) : undefined;
    const handler = firstOf(this.#live);
    const filtered = handler === undefined ? undefined : firstOf(this.#byHandler.get(handler)!);
    if (!unfiltered || !filtered) return unfiltered ?? filtered;
    return firstOf(unfiltered.claims)!.number < firstOf(filtered.claims)!.number
      ? unfiltered
      : filtered;
  }
}

function firstOf<Item>(items: ReadonlySet<Item>): Item | undefined {
  for (const item of items) return item;
  return undefined;
}
