import type { DaemonSchema } from '@millrace/contract/daemon';
import { isEnded, phaseOf } from '../core/session.js';

type Session = DaemonSchema<'Session'>;
type ValueRow = DaemonSchema<'UsageValueRow'>;

const taskTag = 'queue-task:';

/** The queue task, or PLAN/KEY of the task of a plan, that a session works on; null: none. */
export function taskOf({ tags, plan_id: plan, task_key: key }: Session): string | null {
  if (typeof plan === 'string') return `${plan}/${key}`;
  return tags.find((tag) => tag.startsWith(taskTag))?.slice(taskTag.length) ?? null;
}

/**
 * What the agents of each backend brought for their price. The sessions of one task, of the queue
 * or of a plan, are one piece of work, as are those with the same branch; any other session is one
 * of its own.
 * `exactUsd`: by the backend's own session id. `planTasks`: the status of each by PLAN/KEY.
 */
export function valueOf(
  sessions: readonly Session[],
  exactUsd: ReadonlyMap<string, number>,
  planTasks: ReadonlyMap<string, string> = new Map(),
): DaemonSchema<'UsageValue'> {
  const byBackend = groupsOf(sessions, ({ backend }) => backend);
  const known = { exactUsd, planTasks };
  const rows = [...byBackend].map(([backend, own]) => rowOf(backend, own, known));
  return {
    by_backend: rows.sort((a, b) => (a.backend < b.backend ? -1 : 1)),
    total: rowOf('all', sessions, known),
  };
}

interface Known {
  exactUsd: ReadonlyMap<string, number>;
  planTasks: ReadonlyMap<string, string>;
}

function rowOf(
  backend: string,
  sessions: readonly Session[],
  { exactUsd, planTasks }: Known,
): ValueRow {
  const works = [...groupsOf(sessions, workOf).values()].map((own) =>
    own.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  );
  const statusIn = (session: Session) => planTasks.get(taskOf(session) ?? '');
  const isDone = (session: Session) => isFinished(session, statusIn(session));
  const finished = works.filter((own) => own.some(isDone));
  const isOver = (session: Session) =>
    isEnded(session) && !openStatuses.has(statusIn(session) ?? '');
  // An interactive agent that has finished does not end by itself.
  const over = works.filter((own) => own.some(isDone) || own.every(isOver));
  const firstTry = over.filter(([first]) => isDone(first!) && first!.restart_count === 0);
  const merged = works.filter((own) => own.some(isMerged));
  return {
    backend,
    sessions: sessions.length,
    finished_tasks: finished.length,
    merged_branches: merged.length,
    first_try_rate: over.length === 0 ? null : firstTry.length / over.length,
    exact_usd: priceOf(sessions, exactUsd),
    usd_per_finished_task: each(finished, exactUsd),
    usd_per_merged_branch: each(merged, exactUsd),
  };
}

function groupsOf(sessions: readonly Session[], nameOf: (session: Session) => string) {
  const groups = new Map<string, Session[]>();
  for (const session of sessions) {
    const name = nameOf(session);
    groups.set(name, [...(groups.get(name) ?? []), session]);
  }
  return groups;
}

function workOf(session: Session): string {
  const task = taskOf(session);
  if (task !== null) return `task ${task}`;
  const { repo, branch, worktree, id } = session;
  return worktree !== null && branch !== null ? `branch ${repo}\0${branch}` : `session ${id}`;
}

/** Of a task of a plan whose sessions may all have ended. */
const openStatuses: ReadonlySet<string> = new Set(['running', 'waiting']);

function isMerged({ merged_at }: Session): boolean {
  return typeof merged_at === 'string';
}

/** A plan decides about its tasks: it has checks, and stops agents whose turn is over. */
function isFinished(session: Session, planTask: string | undefined): boolean {
  const phase = phaseOf(session);
  if (isMerged(session)) return true;
  return planTask === undefined ? phase === 'done' : planTask === 'done' && phase !== 'failed';
}

/** Over the works whose price is known. */
function each(works: readonly Session[][], exactUsd: ReadonlyMap<string, number>): number | null {
  const priced = works.filter((own) => priceOf(own, exactUsd) !== null);
  return priced.length === 0 ? null : priceOf(priced.flat(), exactUsd)! / priced.length;
}

/** Null when nothing of it has a known price. */
function priceOf(
  sessions: readonly Session[],
  exactUsd: ReadonlyMap<string, number>,
): number | null {
  const ids = new Set(sessions.map(({ backend_session_id: id }) => id ?? ''));
  const prices = [...ids].flatMap((id) => exactUsd.get(id) ?? []);
  return prices.length === 0 ? null : prices.reduce((sum, price) => sum + price, 0);
}
