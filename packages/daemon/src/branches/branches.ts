import type { Database } from '@millrace/db';
import type { Clock, Timer } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { formatTimestamp } from '@millrace/kit/units';
import type { AlertSink } from '../notify/alert.js';
import { SharedRuns } from '../registry/shared-runs.js';
import type { Session, SessionChange, Sessions } from '../sessions/port.js';
import { hasEnded, isTracked, Memory, Round, type Look, type Standing } from './look.js';
import { programCalls } from './programs.js';
import { BranchAlerts } from './raising.js';
import { Standings } from './standings.js';

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

const everyMs = 60_000;
/** What a session has just begun or ended is looked at soon, but not all the time. */
const soonMs = 1_000;
const spacingMs = 5_000;
/** Nobody works any more on the branch of an agent that has ended. */
const endedEveryMs = 600_000;
const endedForMs = 7 * 86_400_000;
const atOnce = 8;

/** How the branch of each agent stands against CI and its base. */
export class Branches {
  readonly #runs: SharedRuns<void>;
  readonly #memory = new Memory();
  readonly #stop = new AbortController();
  readonly #alerts: BranchAlerts;
  #stopListening: (() => void) | undefined;
  #timer: { at: number; timer: Timer } | undefined;
  #lastRunAt = -Infinity;
  #settled: Promise<unknown> = Promise.resolve();
  /** Somebody asked: those who have ended are looked at as well. */
  #isAsked = false;
  #hasAgents = true;

  private constructor(
    private readonly parts: BranchesParts,
    private readonly standings: Standings,
  ) {
    this.#runs = new SharedRuns(() => this.#run());
    this.#alerts = new BranchAlerts(parts.alerts, parts.log);
  }

  static async open(parts: BranchesParts): Promise<Branches> {
    return new Branches(parts, await Standings.open(parts.database));
  }

  /** Looks every minute as long as there is something to look at. */
  start(): void {
    if (!this.parts.isOn) return;
    this.#stopListening = this.parts.sessions.onChange((change) => {
      if (isNews(change)) this.#soon();
    });
    this.#soon();
  }

  /** The standings as they were last seen, sorted by agent. */
  async list(): Promise<Standing[]> {
    if (!this.parts.isOn) return [];
    const sessions = (await this.parts.sessions.list()).filter(isTracked).toSorted(byId);
    return sessions.map((session) => ({
      ...(this.standings.get(session.id) ?? notYetSeen(session)),
      name: session.name,
    }));
  }

  /** Looks again. Those who ask while a look is under way share the next one. */
  async refresh(): Promise<void> {
    if (!this.parts.isOn || this.#stop.signal.aborted) return;
    this.#isAsked = true;
    await this.#runs.run();
  }

  /** Ends what is under way. */
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
        const why = `the branches could not be looked at: ${messageOf(error)}`;
        log.error({ err: error }, why);
      });
    });
    this.#timer = { at, timer };
  }

  #run(): Promise<void> {
    // A look that failed is no reason never to look again.
    const run = this.#lookAtAll().finally(() => this.#hasAgents && this.#arm(everyMs));
    this.#settled = run.catch(() => undefined);
    return run;
  }

  async #lookAtAll(): Promise<void> {
    const { clock, environment, sessions } = this.parts;
    const { signal } = this.#stop;
    if (signal.aborted) return;
    const isAsked = this.#isAsked;
    this.#isAsked = false;
    this.#lastRunAt = clock.monotonic();
    const tracked = (await sessions.list()).filter(isTracked).toSorted(byId);
    this.#hasAgents = tracked.length > 0;
    const due = tracked.filter((session) => this.#isDue(session, isAsked));
    const round = new Round(programCalls({ clock, environment, signal }), this.#memory);
    const looks = await inTurns(due, atOnce, async (session) => {
      const look = await round.lookAt(session);
      if (!signal.aborted) await this.#keep(session, look);
      return look;
    });
    if (signal.aborted) return;
    this.#alerts.consider(due.map((session, at) => ({ session, look: looks[at]! })));
    await this.standings.keepOnly(new Set(tracked.map(({ id }) => id)));
  }

  #isDue(session: Session, isAsked: boolean): boolean {
    const seen = this.standings.get(session.id)?.observed_at;
    if (!seen || !hasEnded(session)) return true;
    const now = this.parts.clock.now();
    if (now - Date.parse(session.status_since) > endedForMs) return false;
    return isAsked || now - Date.parse(seen) >= endedEveryMs;
  }

  async #keep(session: Session, { standing }: Look): Promise<void> {
    await this.standings.put({
      agent_id: session.id,
      name: session.name,
      ...standing,
      observed_at: formatTimestamp(this.parts.clock.now()),
    });
  }
}

/** A session that came, went, or works on another branch. */
function isNews({ before, after }: SessionChange): boolean {
  const wasTracked = before !== undefined && isTracked(before);
  const nowTracked = after !== undefined && isTracked(after);
  if (!wasTracked || !nowTracked) return wasTracked !== nowTracked;
  return before.branch !== after.branch || before.worktree !== after.worktree;
}

function notYetSeen({ id, name, branch }: Session): Standing {
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

function byId(one: Session, other: Session): number {
  return one.id < other.id ? -1 : Number(one.id > other.id);
}

/** Does the work for each item, a few at once; the results are in the order of the items. */
async function inTurns<Item, Result>(
  items: readonly Item[],
  most: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const rest = items.entries();
  const turn = async () => {
    for (const [at, item] of rest) results[at] = await work(item);
  };
  await Promise.all(Array.from({ length: most }, turn));
  return results;
}
