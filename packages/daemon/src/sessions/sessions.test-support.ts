import { systemClock, type Clock } from '@millrace/kit/clock';
import { systemRandom, type Random } from '@millrace/kit/random';
import { budgetVerdict, type BudgetVerdict } from '../core/budget.js';
import { fail } from '../core/api.js';
import type { Session, SessionChange, Sessions, SpawnOrigin, SpawnRequest } from './port.js';

export interface MemorySessionsOptions {
  clock?: Clock;
  random?: Random;
  /** Taken when a request names no backend. */
  defaultBackend?: string;
}

/** Text sent to a session's terminal. */
export interface Sent {
  id: string;
  text: string;
}

/** Sessions without a process behind them: a test says what becomes of each. */
export interface MemorySessions extends Sessions {
  /** Every spawn that started a session, in order. */
  readonly spawned: { id: string; request: SpawnRequest; origin: SpawnOrigin }[];
  readonly sent: Sent[];
  readonly interrupted: string[];
  readonly stopped: string[];
  readonly restarted: string[];
  /** While set, `spawn` refuses with it unless the request says `force`. */
  overBudget: BudgetVerdict | undefined;
  /** While set, `spawn` throws what it returns; return undefined to let one through. */
  refuseSpawn: ((request: SpawnRequest, origin: SpawnOrigin) => unknown) | undefined;
  /** While set, `send` throws what it returns, as when a turn does not begin. */
  refuseSend: ((id: string, text: string) => unknown) | undefined;
  /** Moves a session; `status_since` follows a new status. Listeners are called. */
  set(id: string, partial: Partial<Session>): Session;
  /** Puts a session there that nobody spawned through this object. */
  add(partial?: Partial<Session>): Session;
  /** What the agent wrote, one line or several. */
  say(id: string, text: string): void;
  /** Last answers, as transcripts have them. */
  readonly answers: Map<string, string>;
  /** How many listen; a room that closed must not be among them. */
  readonly listenerCount: number;
}

/** A spend cap that is reached, for `overBudget`. */
export const capReached: BudgetVerdict = budgetVerdict(
  { dailyUsd: 12, weeklyUsd: 40 },
  { isOn: true, dailyUsd: 10, weeklyUsd: 0 },
);

export function memorySessions(options: MemorySessionsOptions = {}): MemorySessions {
  const { clock = systemClock, random = systemRandom, defaultBackend = 'claude' } = options;
  const sessions = new Map<string, Session>();
  const lines = new Map<string, string[]>();
  const keys = new Map<string, { id: string; request: string }>();
  const listeners = new Set<(change: SessionChange) => void>();
  const now = () => new Date(clock.now()).toISOString();

  const notify = (change: SessionChange) => {
    for (const listener of listeners) listener(change);
  };
  const need = (id: string): Session => {
    const session = sessions.get(id);
    if (!session) throw fail('SESSION_NOT_FOUND', `There is no session "${id}".`);
    return session;
  };
  const put = (after: Session): Session => {
    const before = sessions.get(after.id);
    sessions.set(after.id, after);
    notify({ before, after });
    return after;
  };

  const double: MemorySessions = {
    secretOf: () => undefined,
    screen: () => Promise.resolve({ lines: [] }),
    serve: () => Promise.reject(new Error('it serves nothing')),
    spawned: [],
    sent: [],
    interrupted: [],
    stopped: [],
    restarted: [],
    answers: new Map(),
    overBudget: undefined,
    refuseSpawn: undefined,
    refuseSend: undefined,
    get listenerCount() {
      return listeners.size;
    },

    set(id, partial) {
      const before = need(id);
      const isMoved = partial.status !== undefined && partial.status !== before.status;
      const moved = isMoved ? { status_since: now() } : {};
      return put({ ...before, ...moved, ...partial, updated_at: now() });
    },
    add(partial = {}) {
      const id = random.ulid(clock.now());
      return put({ ...freshSession(id, now(), defaultBackend), ...partial });
    },
    say(id, text) {
      need(id);
      lines.set(id, [...(lines.get(id) ?? []), ...text.split('\n')]);
    },

    spawn(request, origin = {}) {
      return attempt(() => {
        const known = origin.idempotencyKey ? keys.get(origin.idempotencyKey) : undefined;
        if (known) {
          if (known.request !== JSON.stringify(request)) {
            throw fail('IDEMPOTENCY_CONFLICT', 'This key was used with another request.');
          }
          return { session: need(known.id), isReplay: true };
        }
        const refused = double.refuseSpawn?.(request, origin);
        if (refused !== undefined) throw refused;
        if (double.overBudget && !request.force) throw overCap(double.overBudget);
        const id = random.ulid(clock.now());
        if (origin.idempotencyKey) {
          keys.set(origin.idempotencyKey, { id, request: JSON.stringify(request) });
        }
        double.spawned.push({ id, request, origin });
        const fresh = freshSession(id, now(), request.backend ?? defaultBackend);
        return { session: put(withRequest(fresh, request, origin)), isReplay: false };
      });
    },
    list: () => attempt(() => [...sessions.values()].toSorted((a, b) => (a.id < b.id ? 1 : -1))),
    find: (id) => attempt(() => sessions.get(id)),
    output(id, { after, limit }) {
      return attempt(() => {
        need(id);
        const said = lines.get(id) ?? [];
        const from = after ?? Math.max(0, said.length - limit);
        const taken = said.slice(from, from + limit);
        return { lines: taken, next: Math.min(from, said.length) + taken.length };
      });
    },
    lastAnswer: (id) => attempt(() => double.answers.get(id)),
    send(id, text) {
      return attempt(() => {
        const session = need(id);
        const refused = double.refuseSend?.(id, text);
        if (refused !== undefined) throw refused;
        if (hasEnded(session) || session.driver === 'headless') {
          throw fail(
            'SESSION_STATE',
            `The session "${id}" takes no input: it is ${session.status}.`,
          );
        }
        double.sent.push({ id, text });
        return double.set(id, { status: 'working' });
      });
    },
    answer({ question }, answer) {
      return attempt(() => {
        need(question.session_id);
        double.sent.push({ id: question.session_id, text: answer });
        double.set(question.session_id, { status: 'working' });
        return 'taken' as const;
      });
    },
    interrupt(id) {
      return attempt(() => {
        need(id);
        double.interrupted.push(id);
      });
    },
    stop(id) {
      return attempt(() => {
        if (hasEnded(need(id))) return need(id);
        double.stopped.push(id);
        return double.set(id, { status: 'done', pid: null, status_reason: 'stopped' });
      });
    },
    restart(id) {
      return attempt(() => {
        const { restart_count } = need(id);
        double.restarted.push(id);
        return double.set(id, { status: 'spawning', restart_count: restart_count + 1 });
      });
    },
    remove(id) {
      return attempt(() => {
        const before = need(id);
        sessions.delete(id);
        lines.delete(id);
        notify({ before, after: undefined });
        return { id, deleted: true, worktree: null, worktree_kept: false, reason: null };
      });
    },
    setForceCompact: (id, state) => attempt(() => double.set(id, { force_compact: state })),
    setMerged: (id, isMerged) =>
      attempt(() => {
        double.set(id, { merged_at: isMerged ? need(id).updated_at : null });
      }),
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  return double;
}

/** Runs it in a later turn, as anything that reads from disk would. */
async function attempt<Result>(run: () => Result): Promise<Result> {
  await Promise.resolve();
  return run();
}

function hasEnded({ status }: Session): boolean {
  return status === 'done' || status === 'errored' || status === 'orphaned';
}

function overCap(verdict: BudgetVerdict): Error {
  return fail('BUDGET_CONFIRMATION_REQUIRED', `A spend cap is reached: ${verdict.reason}.`, {
    members: { confirmation_required: true, gate: 'budget', verdict },
  });
}

function withRequest(fresh: Session, request: SpawnRequest, origin: SpawnOrigin): Session {
  return {
    ...fresh,
    name: request.name ?? fresh.name,
    prompt: request.prompt,
    model: request.model ?? null,
    driver: request.driver ?? 'tmux',
    repo: request.repo ?? null,
    branch: request.branch ?? null,
    workdir: request.cwd ?? request.repo ?? fresh.workdir,
    tags: [...(request.tags ?? [])],
    parent_id: request.parent_id ?? null,
    auto_restart: request.auto_restart ?? false,
    pipeline_id: origin.pipeline?.id ?? null,
    job_id: origin.pipeline?.jobId ?? null,
  };
}

function freshSession(id: string, at: string, backend: string): Session {
  return {
    id,
    name: `session-${id.slice(-4).toLowerCase()}`,
    status: 'spawning',
    backend,
    backend_session_id: null,
    model: null,
    driver: 'tmux',
    repo: null,
    worktree: null,
    branch: null,
    workdir: '/tmp',
    prompt: 'Do the work.',
    tags: [],
    parent_id: null,
    pid: null,
    exit_code: null,
    auto_restart: false,
    restart_count: 0,
    pipeline_id: null,
    job_id: null,
    context_tokens: null,
    context_state: null,
    force_compact: 'inherit',
    limited_until: null,
    last_error: null,
    status_since: at,
    status_reason: null,
    created_at: at,
    updated_at: at,
  };
}
