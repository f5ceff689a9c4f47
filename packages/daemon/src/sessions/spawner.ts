import type { World } from '@millrace/kit/world';
import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Backend } from '../core/backend.js';
import { fail, invalid } from '../core/api.js';
import { backendFor, type Backends } from '../registry/backends.js';
import { findProgram } from '../registry/programs.js';
import { checkTyped } from './answer.js';
import type { AcpSources } from './cli/acp-sources.js';
import type { NewKey, SessionStore } from './session-store.js';
import type { DaemonSettings } from '../core/settings.js';
import type { SessionSettings } from './cli/settings.js';
import type { Session, SpawnOrigin, SpawnRequest } from './port.js';
import { cliOf, prepareRun, takesModel, type ExtraCli } from './cli/command-lines.js';
import {
  removeWorktree,
  workdirIn,
  worktreeFor,
  worktreeTargetFor,
  type WorktreeTarget,
} from './worktrees.js';
import type { GitParts } from '../git/run-git.js';
import { createHash } from 'node:crypto';
import { formatTimestamp } from '@millrace/kit/units';
import {
  freeName,
  isEnded,
  isLive,
  sessionsMeant,
  type Handle,
  type WorktreeOrigin,
} from '../core/session.js';
import { ancestorsOf, descendantsOf, lineageOf, treeObstacle } from '../core/agent-tree.js';
import { Turns } from '../core/turns.js';
import { budgetVerdict, type Reservation } from '../core/budget.js';

export interface SpawnerParts extends World {
  store: SessionStore;
  backends: Backends;
  dataDir: string;
  environment: Readonly<Record<string, string | undefined>>;
  settings: SessionSettings;
  readSpend: () => Promise<Rollup>;
  acp: Pick<AcpSources, 'find'>;
}

/** What was decided about a request. */
interface Means {
  backend: string;
  driver: Session['driver'];
  key: NewKey | undefined;
  ancestors: string[] | undefined;
  start: Start;
}

/** A session that is being started; in the store it counts by itself. */
interface Start {
  readonly parent: string | undefined;
  id?: string;
}

/** Checks spawn requests and creates their sessions. */
export class Spawner {
  readonly #gate: BudgetGate;
  /** Names of sessions that are not in the store yet. */
  readonly #reserved = new Set<string>();
  readonly #starting = new Set<Start>();
  /** Requests with the same key wait for the first one, and then get the stored session. */
  readonly #turns = new Turns();
  /** Worktrees of one repository are made one after the other. */
  readonly #worktreeTurns = new Turns();

  constructor(private readonly parts: SpawnerParts) {
    this.#gate = new BudgetGate(parts);
  }

  async spawn(
    request: SpawnRequest,
    origin: SpawnOrigin,
  ): Promise<{ session: Session; isReplay: boolean }> {
    const { idempotencyKey: key } = origin;
    if (key !== undefined) return this.#turns.in(key, () => this.#spawnOnce(key, request, origin));
    return { session: await this.#spawn(request, origin), isReplay: false };
  }

  async #spawnOnce(key: string, request: SpawnRequest, origin: SpawnOrigin) {
    const known = await this.parts.store.spawnKey(key);
    const there = known && this.parts.store.get(known.sessionId);
    if (known && there) {
      if (known.hash === hashOf(request)) return { session: there.session, isReplay: true };
      throw fail(
        'IDEMPOTENCY_CONFLICT',
        `The idempotency key was used for another request, which started ${known.sessionId}: ` +
          'use a new key.',
      );
    }
    return { session: await this.#spawn(request, origin), isReplay: false };
  }

  async #spawn(given: SpawnRequest, origin: SpawnOrigin): Promise<Session> {
    const { backends, settings } = this.parts;
    const backend = await backendFor(backends, given.backend);
    const driver = await this.#driverFor(given, backend);
    checkRun(backend.id, driver, given, settings.values.backends.extra);
    const request = this.#withParent(given);
    const { idempotencyKey } = origin;
    const key =
      idempotencyKey === undefined ? undefined : { name: idempotencyKey, hash: hashOf(given) };
    const parent = this.parts.store.get(request.parent_id ?? '')?.session;
    const ancestors = parent && [parent.id, ...ancestorsOf(this.#sessions, parent)];
    this.#checkTree(request, origin);
    // It counts from the check on, or parallel requests would all pass.
    const start: Start = { parent: request.parent_id };
    this.#starting.add(start);
    try {
      const means = { backend: backend.id, driver, key, ancestors, start };
      return await this.#create(request, origin, means);
    } finally {
      this.#starting.delete(start);
    }
  }

  async #create(
    request: SpawnRequest,
    origin: SpawnOrigin,
    { key, ancestors, start, ...means }: Means,
  ): Promise<Session> {
    const { settings, dataDir, clock, random, environment } = this.parts;
    const {
      backends: { extra },
      worktrees,
    } = settings.values;
    const git = { clock, environment, runsHooks: worktrees.hooks };
    await this.#checkFamilyBudget(request);
    const target = await worktreeTargetFor(git, request);
    const entry = await this.#gate.pass(request.force ?? false, async () => {
      const now = clock.now();
      const id = random.ulid(now);
      start.id = id;
      const token = Buffer.from(random.bytes(16)).toString('hex');
      return this.#withName(request.name ?? nameFrom(request.prompt), async (name) => {
        const isUsed = (path: string) =>
          this.parts.store.all().some(({ session }) => session.worktree === path);
        const add = async () => {
          const made = await newEntry(
            { id, now, git, dataDir, token, extra, isUsed, ancestors },
            { ...means, target },
            { ...request, name },
            origin,
          );
          await this.parts.store.add(made, key).catch(async (error: unknown) => {
            await discardEntry(git, made);
            throw error;
          });
          return made;
        };
        return target.wantsWorktree ? this.#worktreeTurns.in(target.repo!.root, add) : add();
      });
    });
    return entry.session;
  }

  get #sessions(): Session[] {
    return this.parts.store.all().map(({ session }) => session);
  }

  /** With the id of the parent, which may be named by its name or a prefix of its id. */
  #withParent(request: SpawnRequest): SpawnRequest {
    const { parent_id: words } = request;
    if (words === undefined) return { ...request };
    const [parent, ...others] = sessionsMeant(this.#sessions, words);
    const next = 'GET /api/v1/sessions lists all sessions';
    if (!parent) throw invalid('parent_id', `is not the id or name of a session; ${next}`);
    const count = others.length + 1;
    if (count > 1) throw invalid('parent_id', `means ${count} sessions, so use an id; ${next}`);
    return { ...request, parent_id: parent.id };
  }

  /** Limits of agents that start agents: depth and number. */
  #checkTree({ parent_id: parent }: SpawnRequest, { agent }: SpawnOrigin): void {
    if (parent === undefined || agent === undefined) return;
    const { max_depth: maxDepth, max_children: maxChildren } = this.parts.settings.values.agents;
    const starting = [...this.#starting].filter(
      (start) => start.parent === parent && !this.parts.store.get(start.id ?? ''),
    ).length;
    const obstacle = treeObstacle(this.#sessions, parent, { maxDepth, maxChildren, starting });
    if (obstacle !== undefined) throw fail('FORBIDDEN', `It cannot be started: ${obstacle}.`);
  }

  /** What the families of its parents may spend. */
  async #checkFamilyBudget({ parent_id: parent }: SpawnRequest): Promise<void> {
    if (parent === undefined) return;
    const sessions = this.#sessions;
    const limited = lineageOf(sessions, parent).filter(
      ({ budget_usd: budget }) => typeof budget === 'number',
    );
    if (limited.length === 0) return;
    const { by_agent } = await this.parts.readSpend();
    const spent = new Map(by_agent.map(({ key, exact_usd: usd }) => [key, usd ?? 0]));
    for (const { id, name, budget_usd: budget } of limited) {
      const family = [...lineageOf(sessions, id).slice(0, 1), ...descendantsOf(sessions, id)];
      const usd = family.reduce(
        (sum, { backend_session_id: own }) => sum + (spent.get(own ?? '') ?? 0),
        0,
      );
      if (usd < budget!) continue;
      throw fail(
        'FORBIDDEN',
        `It cannot be started: ${name} and its agents have spent ${dollars(usd)} of their ` +
          `budget of ${dollars(budget!)} (budget_usd).`,
      );
    }
  }

  /** Runs with the wanted name or a free variant of it, which stays reserved meanwhile. */
  async #withName<Result>(wanted: string, run: (name: string) => Promise<Result>): Promise<Result> {
    const live = this.#sessions.filter(isLive).map((each) => each.name);
    const name = freeName(wanted, new Set([...live, ...this.#reserved]));
    this.#reserved.add(name);
    try {
      return await run(name);
    } finally {
      this.#reserved.delete(name);
    }
  }

  /** The requested driver; else the configured one where it works, else acp, tmux, headless. */
  async #driverFor({ driver }: SpawnRequest, backend: Backend): Promise<Session['driver']> {
    const { environment } = this.parts;
    const { default: defaultDriver } = this.parts.settings.values.drivers;
    const hasTmux = (await findProgram('tmux', environment['PATH'])) !== undefined;
    if (driver === 'tmux' && !hasTmux) {
      throw invalid('driver', 'needs tmux, which is not installed: install it, or use "headless"');
    }
    if (driver === 'acp' && !(await this.#hasAcp(backend, true))) throw noAcp(backend.id);
    if (driver !== undefined) return driver;
    if (defaultDriver === 'headless') return 'headless';
    if (defaultDriver === 'tmux' && hasTmux) return 'tmux';
    if (defaultDriver !== 'tmux' && (await this.#hasAcp(backend))) return 'acp';
    return hasTmux ? 'tmux' : 'headless';
  }

  /** Asks the program itself, once, and stores the answer for the list of backends. */
  async #hasAcp(backend: Backend, isRequested = false): Promise<boolean> {
    const found = await this.parts.acp.find(backend, { isRequested });
    await this.parts.backends.noteAcp(backend.id, found);
    return found !== undefined;
  }
}

function noAcp(backend: string): Error {
  return invalid(
    'driver',
    `cannot be "acp": the backend "${backend}" does not speak the Agent Client Protocol. Install ` +
      'an adapter, or name one in `agents.adapters`, then run `ctl backend rescan`',
  );
}

type Rollup = DaemonSchema<'SpendRollup'>;

type BudgetSettings = Pick<
  DaemonSettings['tokens'],
  'budget_gate' | 'budget_daily_usd' | 'budget_weekly_usd' | 'budget_basis' | 'assumed_session_usd'
>;

export interface BudgetParts {
  settings: { readonly values: { readonly tokens: BudgetSettings } };
  readSpend: () => Promise<Rollup>;
  store: Pick<SessionStore, 'all'>;
}

/**
 * Checks the budget caps before a session is started. Running sessions that are not in the figures
 * yet count with the average cost of sessions so far, or an assumed cost on a fresh system, so that
 * many sessions started at once do not all pass below the cap.
 */
export class BudgetGate {
  /** Sessions that have passed the gate and are not in the store yet. */
  #promised = 0;
  readonly #checks = new Turns();

  constructor(private readonly parts: BudgetParts) {}

  /**
   * Runs work one after the other; refuses with the figures when a cap is reached. The reserved
   * cost counts until the work is done and the session itself counts.
   */
  async pass<Result>(isForced: boolean, work: () => Promise<Result>): Promise<Result> {
    if (!isForced) await this.#checks.in('', () => this.#check());
    else this.#promised++;
    try {
      return await work();
    } finally {
      this.#promised--;
    }
  }

  async #check(): Promise<void> {
    const { budget_gate: isOn, budget_daily_usd: dailyUsd, ...tokens } = this.#tokens;
    const caps = { isOn, dailyUsd, weeklyUsd: tokens.budget_weekly_usd };
    const hasCap = caps.isOn && (caps.dailyUsd > 0 || caps.weeklyUsd > 0);
    if (hasCap) {
      const rollup = await this.parts.readSpend();
      const spent = {
        dailyUsd: this.#measured(rollup.daily_usd, rollup.daily_exact_usd),
        weeklyUsd: this.#measured(rollup.weekly_usd, rollup.weekly_exact_usd),
      };
      const verdict = budgetVerdict(spent, caps, this.#reservations(rollup));
      if (verdict.over) throw refusal(verdict);
    }
    this.#promised++;
  }

  #reservations({ by_agent }: Rollup): Reservation[] {
    const costs = by_agent
      .map((row) => this.#measured(row.usd ?? 0, row.exact_usd))
      .filter((cost) => cost > 0);
    const total = costs.reduce((sum, cost) => sum + cost, 0);
    const usd = costs.length === 0 ? this.#tokens.assumed_session_usd : total / costs.length;
    const counted = new Set(by_agent.map(({ key }) => key));
    const waiting = this.parts.store
      .all()
      .map(({ session }) => session)
      .filter((session) => !isEnded(session) && !counted.has(session.backend_session_id ?? ''));
    return Array.from({ length: waiting.length + this.#promised }, () => ({ usd }));
  }

  get #tokens(): BudgetSettings {
    return this.parts.settings.values.tokens;
  }

  /** If no model has an exact price, the rates of its family are used on every basis. */
  #measured(usd: number, exactUsd: number | null | undefined): number {
    const { budget_basis: basis } = this.#tokens;
    if (basis === 'contract' || typeof exactUsd !== 'number') return usd;
    return basis === 'exact' ? exactUsd : Math.max(usd, exactUsd);
  }
}

function refusal(verdict: DaemonSchema<'BudgetVerdict'>): Error {
  const { daily_usd, weekly_usd, cap_daily, cap_weekly, reason } = verdict;
  const figures = [
    cap_daily > 0 ? `${dollars(daily_usd)} of ${dollars(cap_daily)} today` : '',
    cap_weekly > 0 ? `${dollars(weekly_usd)} of ${dollars(cap_weekly)} in 7 days` : '',
  ].filter((text) => text !== '');
  const sentence = `${reason[0]!.toUpperCase()}${reason.slice(1)}`;
  return fail(
    'BUDGET_CONFIRMATION_REQUIRED',
    `${sentence} (${figures.join(', ')}): repeat with \`force\` to go on.`,
    { members: { confirmation_required: true, gate: 'budget', verdict } },
  );
}

/** `$1.20`; amounts below a cent with one significant digit. */
function dollars(usd: number): string {
  return `$${usd > 0 && usd < 0.005 ? Number(usd.toPrecision(1)) : usd.toFixed(2)}`;
}

export interface NewEntryParts {
  id: string;
  now: number;
  git: GitParts;
  dataDir: string;
  token: string;
  extra: readonly ExtraCli[];
  isUsed: (path: string) => boolean;
  /** Undefined without a parent. */
  ancestors: string[] | undefined;
}

/** Refuses what the backend's command line cannot do, before anything is created. */
export function checkRun(
  backend: string,
  driver: Session['driver'],
  request: SpawnRequest,
  extra: readonly ExtraCli[],
): void {
  const cli = cliOf(backend, extra);
  const { prompt, model = null } = request;
  if (model !== null && driver !== 'acp' && !takesModel(cli)) {
    throw invalid('model', `cannot be chosen for the backend "${backend}"`);
  }
  if (prompt.includes('\0')) throw invalid('prompt', 'holds a NUL, which no agent takes');
  if (request.mode !== undefined && driver !== 'acp') {
    throw invalid('mode', 'can be chosen only with the driver "acp"');
  }
  if (driver === 'acp') return;
  const run = prepareRun(backend, extra, { cli, driver, prompt, model, session: undefined });
  if ('impossible' in run) throw invalid('prompt', `cannot be given: ${run.impossible}`);
  if (run.paste !== undefined) checkTyped('prompt', prompt);
}

/** The session of a request that passed all gates. Makes its worktree where it is to have one. */
export async function newEntry(
  parts: NewEntryParts,
  {
    backend,
    driver,
    target,
  }: { backend: string; driver: Session['driver']; target: WorktreeTarget },
  request: SpawnRequest,
  origin: SpawnOrigin,
): Promise<{ session: Session; handle: Handle }> {
  const { id, now } = parts;
  const name = request.name ?? nameFrom(request.prompt);
  const made = target.wantsWorktree ? await worktreeFor(parts, target, request, name) : undefined;
  const stamp = formatTimestamp(now);
  const { repo } = target;
  const session: Session = {
    id,
    name,
    status: 'spawning',
    backend,
    backend_session_id: null,
    model: request.model ?? null,
    driver,
    repo: request.repo ?? repo?.root ?? null,
    worktree: made?.path ?? null,
    branch: made?.mark.branch ?? repo?.branch ?? null,
    ...(made && { base_branch: made.mark.baseBranch, base_commit: made.mark.base }),
    workdir: made
      ? await workdirIn(made.path, target)
      : (target.cwd ?? request.repo ?? process.cwd()),
    prompt: request.prompt,
    tags: request.tags ?? [],
    parent_id: request.parent_id ?? null,
    ...(parts.ancestors && { ancestors: parts.ancestors }),
    ...(request.budget_usd !== undefined && { budget_usd: request.budget_usd }),
    pid: null,
    exit_code: null,
    auto_restart: request.auto_restart ?? false,
    restart_count: 0,
    ...(origin.task && { task: origin.task }),
    pipeline_id: origin.pipeline?.id ?? null,
    job_id: origin.pipeline?.jobId ?? null,
    ...(origin.plan && { plan_id: origin.plan.id, task_key: origin.plan.key }),
    context_tokens: null,
    context_state: null,
    force_compact: 'inherit',
    limited_until: null,
    last_error: null,
    status_since: stamp,
    status_reason: null,
    created_at: stamp,
    updated_at: stamp,
  };
  const handle = newHandle(parts, backend, session.model, made?.mark ?? null);
  const isWorkspaceNamed = (request.cwd ?? request.repo) !== undefined;
  const { mode } = request;
  return { session, handle: { ...handle, isWorkspaceNamed, ...(mode && { mode }) } };
}

function newHandle(
  { token, now, extra }: NewEntryParts,
  backend: string,
  model: string | null,
  worktree: WorktreeOrigin | null,
): Handle {
  return {
    token,
    startMark: null,
    starts: 0,
    startedAt: now,
    inputAt: now,
    limitTurn: null,
    isPromptPending: false,
    isStopping: false,
    cli: cliOf(backend, extra),
    format: 'text',
    model,
    autoRestarts: 0,
    restartAt: null,
    outputStart: 0,
    worktree,
  };
}

/** Removes what `newEntry` created, when the session cannot be stored. */
export async function discardEntry(
  git: GitParts,
  { session, handle }: { session: Session; handle: Handle },
): Promise<void> {
  if (session.worktree !== null && handle.worktree) {
    await removeWorktree(git, session.worktree, handle.worktree);
  }
}

const maxNameLength = 60;

/** The first line of a prompt, cut at a word. */
export function nameFrom(prompt: string): string {
  const printable = prompt.replaceAll(/\p{Cc}+/gu, '\n');
  const line = printable.split('\n').find((each) => each.trim() !== '');
  const words = (line ?? '').trim().replaceAll(/\s+/g, ' ');
  if (words === '') return 'agent';
  if (words.length <= maxNameLength) return words;
  const cut = words.slice(0, maxNameLength).replace(/\s+\S*$/, '');
  return `${cut.trimEnd()}…`;
}

/** The same for the same request alone, in whatever order its members came. */
export function hashOf(request: SpawnRequest): string {
  const members = Object.entries(request).filter(([, value]) => value !== undefined);
  const text = JSON.stringify(members.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return createHash('sha256').update(text).digest('hex');
}
