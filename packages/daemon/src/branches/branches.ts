import { isDeepStrictEqual } from 'node:util';
import type { Database, Collection } from '@millrace/engine';
import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { formatTimestamp } from '@millrace/kit/units';
import type { AlertSink } from '../notify/alert-store.js';
import { byId } from '../core/backend.js';
import { isLive } from '../core/session.js';
import { SharedRuns } from '../core/turns.js';
import type { Session, SessionChange, Sessions } from '../sessions/port.js';
import { ComparisonCache, Round, type Inspection, type BranchStatus } from './inspection.js';
import { localMerges, type MergeCandidate } from './local-merges.js';
import { programCalls } from './programs.js';
import { BranchAlerts } from './alerts.js';

export interface BranchesParts {
  database: Database;
  clock: Clock;
  log: Log;
  sessions: Pick<Sessions, 'list' | 'onChange'>;
  alerts: AlertSink;
  environment: Readonly<Record<string, string | undefined>>;
  /** The setting `branches.enabled`. */
  isOn: boolean;
}

const intervalMs = 60_000;
/** A session that started or ended is inspected soon, with a minimum interval. */
const soonMs = 1_000;
const spacingMs = 5_000;
/** Branches of ended agents change rarely. */
const endedEveryMs = 600_000;
const endedForMs = 7 * 86_400_000;
const maxConcurrent = 8;

/** CI state of each agent's branch, and its distance to the base. */
export class Branches {
  readonly #runs: SharedRuns<void>;
  readonly #memory = new ComparisonCache();
  /** Comparisons with the local base. */
  readonly #localMemory = new ComparisonCache();
  /** The tip of each agent's branch when it was last inspected. */
  readonly #heads = new Map<string, string | null>();
  readonly #stop = new AbortController();
  readonly #alerts: BranchAlerts;
  #stopListening: (() => void) | undefined;
  #timer: { at: number; timer: Timer } | undefined;
  #lastRunAt = -Infinity;
  #settled: Promise<unknown> = Promise.resolve();
  /** A caller requested the list: ended sessions are inspected too. */
  #isRequested = false;
  #hasAgents = true;

  private constructor(
    private readonly parts: BranchesParts,
    private readonly statuses: BranchStatuses,
  ) {
    this.#runs = new SharedRuns(() => this.#run());
    this.#alerts = new BranchAlerts(parts.alerts, parts.log);
  }

  static async open(parts: BranchesParts): Promise<Branches> {
    return new Branches(parts, await BranchStatuses.open(parts.database));
  }

  /** Runs every minute while there are tracked sessions. */
  start(): void {
    if (!this.parts.isOn) return;
    this.#stopListening = this.parts.sessions.onChange((change) => {
      if (affectsBranches(change)) this.#soon();
    });
    this.#soon();
  }

  /** Last known statuses, sorted by agent. */
  async list(): Promise<BranchStatus[]> {
    if (!this.parts.isOn) return [];
    const sessions = (await this.parts.sessions.list()).filter(isTracked).toSorted(byId);
    return sessions.map((session) => {
      const status = this.statuses.get(session.id) ?? unknownStatus(session);
      // The base may be that of a remote, which does not have the merge yet.
      const merged = typeof session.merged_at === 'string' || status.merged;
      return { ...status, merged, name: session.name };
    });
  }

  /**
   * The ids of candidates whose branch is merged: into the local base now, or into that of the
   * remote at the last inspection, without commits since.
   */
  async merged(candidates: readonly MergeCandidate[]): Promise<ReadonlySet<string>> {
    const { clock, environment, isOn } = this.parts;
    const { signal } = this.#stop;
    if (!isOn || signal.aborted) return new Set();
    const call = programCalls({ clock, environment, signal });
    const merges = await localMerges(candidates, this.#localMemory, call);
    const found = new Map(merges.map((merge) => [merge.id, merge]));
    const isMerged = ({ id }: MergeCandidate): boolean => {
      const local = found.get(id);
      if (local?.isMerged) return true;
      const inspected = this.#heads.get(id);
      const hasMoved = local !== undefined && inspected !== undefined && inspected !== local.head;
      return !hasMoved && this.statuses.get(id)?.merged === true;
    };
    return new Set(candidates.filter(isMerged).map(({ id }) => id));
  }

  /** Inspects again. Callers during a running round share the next one. */
  async refresh(): Promise<void> {
    if (!this.parts.isOn || this.#stop.signal.aborted) return;
    this.#isRequested = true;
    await this.#runs.run();
  }

  /** Aborts the running round. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#stopListening?.();
    this.#timer?.timer.cancel();
    await this.#settled;
    await this.#alerts.settled();
  }

  #soon(): void {
    const now = this.parts.clock.monotonic();
    this.#arm(Math.max(soonMs, this.#lastRunAt + spacingMs - now));
  }

  #arm(delayMs: number): void {
    const { clock, log } = this.parts;
    const at = clock.monotonic() + delayMs;
    if (this.#stop.signal.aborted || (this.#timer && this.#timer.at <= at)) return;
    this.#timer?.timer.cancel();
    const timer = clock.after(delayMs, () => {
      this.#timer = undefined;
      this.#runs.run().catch((error: unknown) => {
        log.error({ err: error }, 'failed to inspect branches');
      });
    });
    this.#timer = { at, timer };
  }

  #run(): Promise<void> {
    // A failed round must not stop the following ones.
    const run = this.#inspectAll().finally(() => this.#hasAgents && this.#arm(intervalMs));
    this.#settled = run.catch(() => undefined);
    return run;
  }

  async #inspectAll(): Promise<void> {
    const { clock, environment, sessions } = this.parts;
    const { signal } = this.#stop;
    if (signal.aborted) return;
    const isRequested = this.#isRequested;
    this.#isRequested = false;
    this.#lastRunAt = clock.monotonic();
    const tracked = (await sessions.list()).filter(isTracked).toSorted(byId);
    this.#hasAgents = tracked.length > 0;
    const due = tracked.filter((session) => this.#isDue(session, isRequested));
    const round = new Round(programCalls({ clock, environment, signal }), this.#memory);
    const inspections = await mapConcurrently(due, maxConcurrent, async (session) => {
      const inspection = await round.inspect(session);
      if (!signal.aborted) await this.#save(session, inspection);
      return inspection;
    });
    if (signal.aborted) return;
    this.#alerts.consider(due.map((session, at) => ({ session, inspection: inspections[at]! })));
    const ids = new Set(tracked.map(({ id }) => id));
    for (const id of this.#heads.keys()) if (!ids.has(id)) this.#heads.delete(id);
    await this.statuses.deleteAllExcept(ids);
  }

  #isDue(session: Session, isRequested: boolean): boolean {
    const observedAt = this.statuses.get(session.id)?.observed_at;
    if (!observedAt || isLive(session)) return true;
    if (Date.parse(session.merged_at ?? '') >= Date.parse(observedAt)) return true;
    const now = this.parts.clock.now();
    if (now - Date.parse(session.status_since) > endedForMs) return false;
    return isRequested || now - Date.parse(observedAt) >= endedEveryMs;
  }

  async #save(session: Session, { status, head }: Inspection): Promise<void> {
    this.#heads.set(session.id, head);
    await this.statuses.put({
      agent_id: session.id,
      name: session.name,
      ...status,
      observed_at: formatTimestamp(this.parts.clock.now()),
    });
  }
}

/** True when a session appeared, ended, switched its branch or was merged. */
function affectsBranches({ before, after }: SessionChange): boolean {
  const wasTracked = before !== undefined && isTracked(before);
  const nowTracked = after !== undefined && isTracked(after);
  if (!wasTracked || !nowTracked) return wasTracked !== nowTracked;
  return (['branch', 'worktree', 'merged_at'] as const).some((key) => before[key] !== after[key]);
}

function unknownStatus({ id, name, branch }: Session): BranchStatus {
  return {
    agent_id: id,
    name,
    branch,
    base: null,
    ci: { state: null, workflow: null, url: null },
    checks: [],
    ahead: null,
    behind: null,
    merged: null,
    observed_at: null,
    error: null,
  };
}

/** True when the session has a branch to inspect. */
function isTracked({ branch, worktree, repo }: Session): boolean {
  return branch !== null || worktree !== null || repo !== null;
}

/** Runs `work` for each item with limited concurrency; results keep the order of the items. */
async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  concurrency: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const rest = items.entries();
  const turn = async () => {
    for (const [at, item] of rest) results[at] = await work(item);
  };
  await Promise.all(Array.from({ length: concurrency }, turn));
  return results;
}

const maxStatuses = 10_000;

/**
 * The branch statuses by agent, on disk and in memory. A status is written only when it differs, so
 * that watchers get only changes.
 */
export class BranchStatuses {
  readonly #latest = new Map<string, BranchStatus>();

  private constructor(private readonly records: Collection<BranchStatus>) {}

  static async open(database: Database): Promise<BranchStatuses> {
    const statuses = new BranchStatuses(database.collection<BranchStatus>('branches'));
    const { records } = await statuses.records.find({ limit: maxStatuses });
    for (const { data } of records) statuses.#latest.set(data.agent_id, data);
    return statuses;
  }

  get(agentId: string): BranchStatus | undefined {
    return this.#latest.get(agentId);
  }

  async put(status: BranchStatus): Promise<void> {
    const { agent_id: key } = status;
    const before = this.#latest.get(key);
    const observed_at = status.observed_at;
    if (!before || !isDeepStrictEqual({ ...before, observed_at }, status)) {
      await this.records.upsert(key, status);
    }
    this.#latest.set(key, status);
  }

  /** Deletes the statuses of agents that no longer exist. */
  async deleteAllExcept(agents: ReadonlySet<string>): Promise<void> {
    for (const key of this.#latest.keys()) {
      if (agents.has(key)) continue;
      await this.records.deleteByKey(key);
      this.#latest.delete(key);
    }
  }
}

/** Opens the branch statuses and starts to update them. */
export async function openBranches(parts: BranchesParts): Promise<Branches> {
  const branches = await Branches.open(parts);
  branches.start();
  return branches;
}
