/** What of a task's flow is stored with the task; a task without any of it has none. */
export interface TaskFlow {
  flowId?: string | undefined;
  /** Name of the task in its flow. */
  key?: string | undefined;
  parentId?: string | undefined;
  /** Each with its end, once it has ended as asked or failed. */
  dependsOn?: readonly Dependency[] | undefined;
  /** When the task is due once its dependencies have ended. */
  dueAt?: number | undefined;
  /** Only while PENDING. */
  wait?: FlowWait | undefined;
  wokenBy?: WokenBy | undefined;
  /** When the condition of the last wait was met. */
  wokenAt?: number | undefined;
  /** Number of suspensions, by which an outdated waiter row is recognized. */
  waits?: number | undefined;
  /** Suspensions since the last recorded step. */
  suspensions?: number | undefined;
  steps?: { readonly count: number; readonly bytes: number } | undefined;
  /** Unread signals by name, and the number of all that were received. */
  signals?:
    { readonly received: number; readonly unread: Readonly<Record<string, number>> } | undefined;
  /** Other tasks may wait for the end of this one. */
  hasWaiters?: boolean | undefined;
  hasChildren?: boolean | undefined;
  /** The last suspension waited for tasks. */
  hasAwaited?: boolean | undefined;
}

export interface Dependency {
  id: string;
  on: 'success' | 'end';
  status?: EndStatus | undefined;
}

export type EndStatus = 'SUCCEEDED' | 'DEAD';

export const waitKinds = ['dependencies', 'timer', 'signal', 'tasks'] as const;
export type WaitKind = (typeof waitKinds)[number];

/** Why a task that is PENDING is not due. */
export interface FlowWait {
  kind: WaitKind;
  until?: number | undefined;
  signals?: readonly string[] | undefined;
  /** Awaited tasks that have not ended. */
  openTasks?: number | undefined;
  mode?: 'any' | 'all' | undefined;
}

export interface WokenBy {
  kind: 'timer' | 'signal' | 'task';
  name?: string | undefined;
  id?: string | undefined;
}

/** What a handler waits for when it suspends its task. */
export interface Suspension {
  until?: number | undefined;
  signals?: readonly string[] | undefined;
  tasks?: readonly string[] | undefined;
  mode: 'any' | 'all';
}

/** Due time of a task that waits for something else than time: the latest that a key can hold. */
export const never = 2 ** 48 - 1;

/** A task that suspends this often without a step in between is stuck. */
export const maxSuspensions = 10_000;
export const maxUnreadSignals = 100;
export const maxStepBytes = 256 * 1024;
export const maxJournalBytes = 8 * 2 ** 20;

export interface StoredStep {
  name: string;
  /** Order of recording. */
  number: number;
  /** JSON text. */
  result?: string | undefined;
  error?: { type: string; message: string } | undefined;
  startedAt?: number | undefined;
  recordedAt: number;
}

export interface StoredSignal {
  id: string;
  name: string;
  /** Order of arrival. */
  number: number;
  /** JSON text. */
  payload?: string | undefined;
  receivedAt: number;
  /** Kept without its payload, so that a repeated send is recognized. */
  isConsumed?: boolean | undefined;
}

export function isEnded(status: string): status is EndStatus {
  return status === 'SUCCEEDED' || status === 'DEAD';
}

/** What the dependencies of a task mean for it. */
export function dependencyState(
  dependsOn: readonly Dependency[],
): { kind: 'met' } | { kind: 'open' } | { kind: 'failed'; id: string } {
  const failed = dependsOn.find(({ on, status }) => on === 'success' && status === 'DEAD');
  if (failed) return { kind: 'failed', id: failed.id };
  return { kind: dependsOn.every(({ status }) => status !== undefined) ? 'met' : 'open' };
}

/** Unread signals of a name, which may be one that every object has, such as `constructor`. */
export function unreadOf(unread: Readonly<Record<string, number>>, name: string): number {
  return Object.hasOwn(unread, name) ? unread[name]! : 0;
}

/** The event that ends a suspension, if its condition holds; `last`: the event that just came. */
export function wakeReason(
  { signals = [], openTasks = 0, mode }: FlowWait,
  unread: Readonly<Record<string, number>>,
  last: WokenBy | undefined,
): WokenBy | undefined {
  const arrived = signals.filter((name) => unreadOf(unread, name) > 0);
  if (mode === 'all') {
    const isMet = arrived.length === signals.length && openTasks === 0;
    return isMet ? (last ?? { kind: 'signal', name: arrived.at(-1) }) : undefined;
  }
  return last ?? (arrived.length > 0 ? { kind: 'signal', name: arrived[0] } : undefined);
}

/** What a PENDING task of a flow waits for; undefined: for its turn like any other. */
export function flowWaitOf({
  status,
  flow,
}: {
  status: string;
  flow?: TaskFlow | null;
}): WaitKind | undefined {
  return status === 'PENDING' ? flow?.wait?.kind : undefined;
}
