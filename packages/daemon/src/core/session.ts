import { createHash } from 'node:crypto';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { formatTimestamp } from '@millrace/kit/units';

export type Session = DaemonSchema<'Session'>;
export type SessionStatus = DaemonSchema<'SessionStatus'>;

/** Observed status of a running agent. */
export interface Sign {
  status: 'working' | 'waiting_for_input' | 'idle' | 'rate_limited';
  /** Human-readable evidence. */
  reason: string;
  /** With `rate_limited`: when the limit ends. */
  limitedUntil?: number | undefined;
  /** With `idle`: the error that ended the turn. */
  failure?: string | undefined;
}

/** How the agent's process ended. */
export interface Exit {
  /** Null when unknown. */
  code: number | null;
  /** The signal that ended it, if known. */
  signal: string | null;
  /** A user or the daemon stopped it. */
  wasStopped: boolean;
  /** The process has ended without an exit record. */
  isLost: boolean;
  /** A provider limit found in its last output. */
  limit: { reason: string; until: number } | null;
  /** The error it reported, if any. */
  failure: string | null;
  /** Its prompt did not reach it, for this reason. */
  undelivered?: string | undefined;
}

/**
 * Evidence of one observation, strongest first: process exit, the agent's own events, its
 * transcript, its screen, and staleness.
 */
export interface Evidence {
  exit?: Exit | undefined;
  event?: Sign | undefined;
  transcript?: Sign | undefined;
  pane?: Sign | undefined;
  staleness?: Sign | undefined;
  /** Observed facts other than the status. */
  facts?: Facts | undefined;
}

export type Facts = Partial<
  Pick<
    Session,
    | 'backend_session_id'
    | 'model'
    | 'context_tokens'
    | 'context_window'
    | 'context_state'
    | 'branch'
    | 'acp'
  >
>;

/** Whether its process has ended (a restart may follow). */
export function isEnded({ status, pid }: Pick<Session, 'status' | 'pid'>): boolean {
  switch (status) {
    case 'done':
    case 'errored':
    case 'orphaned':
      return true;
    case 'rate_limited':
      return pid === null;
    default:
      return false;
  }
}

/**
 * Applies evidence to a session. No evidence leaves it unchanged: unknown never means idle.
 * Returns the identical object when nothing changed.
 */
export function judge(session: Session, evidence: Evidence, now: number): Session {
  if (isEnded(session)) return session;
  const informed = withFacts(session, evidence.facts ?? {}, now);
  if (evidence.exit) return ended(informed, evidence.exit, now);
  const { event, transcript, pane, staleness } = evidence;
  const sign = event ?? transcript ?? pane ?? staleness;
  if (!sign) return informed;
  // A screen also shows an empty prompt during a limit; a transcript or event ends the limit.
  const isShownOnly = !event && !transcript;
  if (sign.status === 'idle' && isShownOnly && isLimited(informed, now)) return informed;
  const limitedUntil = sign.status === 'rate_limited' ? (sign.limitedUntil ?? null) : null;
  const next = withStatus(informed, sign.status, sign.reason, now);
  if (sign.status === 'rate_limited') {
    const stamp = limitedUntil === null ? next.limited_until : formatTimestamp(limitedUntil);
    return stamp === next.limited_until && next.last_error === sign.reason
      ? next
      : { ...next, limited_until: stamp, last_error: sign.reason, updated_at: stampOf(now) };
  }
  const unlimited = next.limited_until === null ? next : { ...next, limited_until: null };
  return withTurnError(unlimited, sign, now);
}

/** Records how the turn ended. An idle agent keeps the error of its turn until the next one. */
function withTurnError(session: Session, { status, failure }: Sign, now: number): Session {
  const before = session.turn_error ?? null;
  const error = failure ?? (status === 'idle' ? before : null);
  if (error === before) return session;
  return withFacts(session, { turn_error: error, ...(error && { last_error: error }) }, now);
}

function isLimited({ status, limited_until }: Session, now: number): boolean {
  return status === 'rate_limited' && limited_until !== null && Date.parse(limited_until) > now;
}

function ended(session: Session, exit: Exit, now: number): Session {
  const over: Session = { ...session, pid: null, exit_code: exit.code, limited_until: null };
  if (exit.undelivered !== undefined) {
    const reason = `its prompt could not be delivered: ${exit.undelivered}`;
    return withStatus({ ...over, last_error: reason }, 'errored', reason, now);
  }
  if (exit.wasStopped) return withStatus(over, 'done', 'it was stopped', now);
  if (exit.limit) {
    const { reason, until } = exit.limit;
    const limited = { ...over, limited_until: formatTimestamp(until), last_error: reason };
    return withStatus(limited, 'rate_limited', `it ended at a limit: ${reason}`, now);
  }
  if (exit.isLost) {
    const reason = 'its process is gone and left no exit code';
    return withStatus({ ...over, last_error: reason }, 'orphaned', reason, now);
  }
  const how = wordsOf(exit);
  if (exit.code === 0 && exit.failure === null) return withStatus(over, 'done', how, now);
  const failure = exit.failure ?? how;
  return withStatus({ ...over, last_error: failure }, 'errored', how, now);
}

function wordsOf({ code, signal }: Exit): string {
  if (code !== null) return `its process exited with code ${code}`;
  return signal === null
    ? 'its process ended for an unknown reason'
    : `its process was killed by ${signal}`;
}

/** The session at a start or restart. */
export function starting(session: Session, reason: string | null, now: number): Session {
  const fresh: Session = {
    ...session,
    pid: null,
    exit_code: null,
    limited_until: null,
    ...(session.turn_error && { turn_error: null }),
  };
  return { ...withStatus(fresh, 'spawning', '', now), status_reason: reason };
}

export function withStatus(
  session: Session,
  status: SessionStatus,
  reason: string,
  now: number,
): Session {
  if (session.status === status && session.status_reason === reason) return session;
  // Work after a merge is not merged.
  const startsWork = status === 'working' || status === 'spawning';
  return {
    ...session,
    ...(startsWork && session.merged_at && { merged_at: null }),
    status,
    status_reason: reason,
    status_since: session.status === status ? session.status_since : stampOf(now),
    updated_at: stampOf(now),
  };
}

/** Applies the facts that differ. */
export function withFacts(session: Session, facts: Partial<Session>, now: number): Session {
  const news = Object.entries(facts).filter(
    ([name, value]) => value !== undefined && session[name as keyof Session] !== value,
  );
  if (news.length === 0) return session;
  return { ...session, ...Object.fromEntries(news), updated_at: stampOf(now) };
}

function stampOf(now: number): string {
  return formatTimestamp(now);
}

/** The format of an agent's output: text, or events as JSON lines. */
export type OutputFormat = 'text' | 'claude-json' | 'codex-json' | 'opencode-json' | 'acp-json';

/** Internal state of a session, beside what the API shows. */
export interface Handle {
  /** An argument of the agent's wrapper script: proves that a process is ours. */
  token: string;
  /** Start time of the process `pid`; detects a reused process id. */
  startMark: string | null;
  /** How many times it was started. */
  starts: number;
  startedAt: number;
  /** Time of the last input. */
  inputAt: number;
  /** The turn, by the time of its input, whose limit was already reported. */
  limitTurn: number | null;
  /** Its first prompt still has to be pasted. */
  isPromptPending: boolean;
  /** Why its first prompt could not be delivered; its process is being ended. */
  undelivered?: string;
  /** The request named the directory to work in; sessions of older versions do not say. */
  isWorkspaceNamed?: boolean;
  /** A stop was requested. */
  isStopping: boolean;
  /** The row of the tables that describes its command line. */
  cli: string;
  format: OutputFormat;
  /** The requested model, as named in the request. */
  model: string | null;
  /** The requested mode of an agent over ACP. */
  mode?: string;
  /** What it was restarted with, instead of its prompt. */
  text?: string;
  /** Consecutive automatic restarts. */
  autoRestarts: number;
  /** When it is to be started again. */
  restartAt: number | null;
  /** Offset in the output where the last start begins. */
  outputStart: number;
  worktree: WorktreeOrigin | null;
}

/** How a worktree was made, as needed to remove it. */
export interface WorktreeOrigin {
  /** The repository that it belongs to. */
  root: string;
  branch: string;
  /** The commit that it started at. */
  base: string;
  /** The branch that was checked out where it was made from. */
  baseBranch: string | null;
  /** The branch was made for it. */
  madeBranch: boolean;
}

export interface Entry {
  session: Session;
  handle: Handle;
}

type Named = Pick<Session, 'id' | 'name' | 'status'>;

const endedStatuses: ReadonlySet<string> = new Set(['done', 'errored', 'orphaned']);

/** A live session occupies its name. One that waits for the end of a limit is live. */
export function isLive({ status }: Pick<Session, 'status'>): boolean {
  return !endedStatuses.has(status);
}

/** The name, or the first of `name-2`, `name-3`, ... that is free. */
export function freeName(wanted: string, taken: ReadonlySet<string>): string {
  if (!taken.has(wanted)) return wanted;
  for (let number = 2; ; number++) {
    const suffix = `-${number}`;
    const name = `${wanted.slice(0, maxNameLength - suffix.length)}${suffix}`;
    if (!taken.has(name)) return name;
  }
}

/** As the contract has it. */
const maxNameLength = 128;

/** Shorter prefixes would be guesses. */
const minPrefixLength = 6;

/**
 * The sessions that words may mean: an id, else a name (of live sessions first), else a prefix of
 * ids. One of them is the answer; several are ambiguous.
 */
export function sessionsMeant<Each extends Named>(all: readonly Each[], words: string): Each[] {
  const exact = all.find(({ id }) => id === words);
  if (exact) return [exact];
  const named = all.filter(({ name }) => name === words);
  const live = named.filter(isLive);
  if (live.length > 0) return live;
  if (named.length > 0 || words.length < minPrefixLength) return named;
  const prefix = words.toUpperCase();
  return all.filter(({ id }) => id.toUpperCase().startsWith(prefix));
}

/**
 * Progress of a session with its one assignment, for the pipeline job or queue task that waits for
 * it. `limited`: the provider refuses to continue. `stopped`: ended by someone before it was done.
 */
export type Phase = 'works' | 'waits' | 'limited' | 'done' | 'stopped' | 'failed';

export function phaseOf({
  status,
  exit_code,
  turn_error = null,
}: Pick<Session, 'status' | 'exit_code' | 'turn_error'>): Phase {
  switch (status) {
    case 'spawning':
    case 'working':
      return 'works';
    case 'waiting_for_input':
      return 'waits';
    case 'rate_limited':
      return 'limited';
    case 'idle':
      // An interactive agent does not end by itself: its turn is over.
      return turn_error === null ? 'done' : 'failed';
    case 'done':
      return exit_code === 0 ? 'done' : 'stopped';
    case 'errored':
    case 'orphaned':
      return 'failed';
  }
}

/** True when the two are the same for a waiting job or task. */
export function isSamePhase(a: Session | undefined, b: Session | undefined): boolean {
  if (!a || !b) return a === b;
  return (
    a.status === b.status &&
    a.exit_code === b.exit_code &&
    (a.turn_error ?? null) === (b.turn_error ?? null) &&
    (a.pid === null) === (b.pid === null)
  );
}

/** The token of an agent: it names its session, and comes from a secret of the daemon and it. */
export function agentToken(id: string, secret: string): string {
  return `mra_${id}_${createHash('sha256').update(`agent\0${id}\0${secret}`).digest('hex')}`;
}
