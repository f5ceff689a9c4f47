import type { DaemonSchema } from '@millrace/contract/daemon';

export type ContextLevel = 'ok' | 'warning' | 'critical';
type SessionStatus = DaemonSchema<'SessionStatus'>;

export interface Thresholds {
  warn: number;
  critical: number;
}

/** Absolute thresholds, and percentages of the model's context window; 0: none. */
export interface ContextLimits extends Thresholds {
  warn_pct?: number;
  critical_pct?: number;
}

/** The lower limit wins where the window is known. */
export function thresholdsFor(
  limits: ContextLimits,
  window: number | null | undefined,
): Thresholds {
  const { warn, critical, warn_pct = 0, critical_pct = 0 } = limits;
  const lower = (limit: number, percent: number) =>
    window && percent > 0 ? Math.min(limit, (window * percent) / 100) : limit;
  return { warn: lower(warn, warn_pct), critical: lower(critical, critical_pct) };
}

/** Level of a context size. Reaching a threshold counts; null is unknown. */
export function contextState(tokens: number, thresholds: Thresholds): ContextLevel;
export function contextState(tokens: number | null, thresholds: Thresholds): ContextLevel | null;
export function contextState(tokens: number | null, { warn, critical }: Thresholds) {
  if (tokens === null) return null;
  if (tokens >= critical) return 'critical';
  return tokens >= warn ? 'warning' : 'ok';
}

/** Whether a busy agent may be interrupted: its own override, else the setting. */
export function isForced(choice: DaemonSchema<'ForceCompactChoice'>, setting: boolean): boolean {
  return choice === 'inherit' ? setting : choice === 'on';
}

/** An interrupted agent has this long to become idle. */
export const interruptLimitMs = 45_000;
/** Two compact commands to one agent are at least this far apart. */
export const compactCooldownMs = 300_000;
/** An agent idle for this long after the command is considered done with it. */
export const compactGraceMs = 30_000;

export interface GuardRules extends Thresholds {
  /** tokens.warn_alert */
  alerts: boolean;
  /** tokens.auto_compact */
  autoCompact: boolean;
}

/** Snapshot of an agent. */
export interface Observation {
  now: number;
  status: SessionStatus;
  /** When the status last changed. */
  statusSince: number;
  tokens: number | null;
  /** Its terminal takes input, and its CLI has a compact command. */
  canSteer: boolean;
  /** It may be interrupted. */
  force: boolean;
  /** No newer snapshot exists. Older snapshots can raise alerts, but cause no actions. */
  isLatest: boolean;
}

/** Phase of the guard's work on one agent. */
export type GuardPhase =
  | { kind: 'resting' }
  /** Escape was sent; waiting for the agent to become idle. */
  | { kind: 'interrupting'; since: number }
  /** The interrupt failed; the compact command is sent when the agent is next idle. */
  | { kind: 'nudging' }
  /** The command was sent; `resumes` when it interrupted a turn. */
  | { kind: 'compacting'; since: number; hasBegun: boolean; resumes: boolean };

/** State of the guard for one agent. Plain JSON. */
export interface GuardState {
  /** The last reported level, or the lower level that the context has fallen to since. */
  level: ContextLevel;
  /** How often a threshold was crossed upward. */
  crossings: number;
  phase: GuardPhase;
  /** Time and context size of the last compact command. */
  compacted: { at: number; tokens: number | null } | null;
  /** Context size before the compaction; a smaller one afterwards is a saving. */
  toSave: number | null;
}

export const firstGuardState: GuardState = {
  level: 'ok',
  crossings: 0,
  phase: { kind: 'resting' },
  compacted: null,
  toSave: null,
};

export type GuardAction =
  | { kind: 'alert'; level: 'warning' | 'critical'; crossing: number }
  | { kind: 'interrupt' }
  /** The interrupt failed. */
  | { kind: 'abandon' }
  | { kind: 'compact' }
  | { kind: 'resume' }
  | { kind: 'saved'; tokensBefore: number; tokensAfter: number };

export interface GuardStep {
  state: GuardState;
  actions: GuardAction[];
}

/** One step: the next state, and the actions to take now, in order. */
export function guardStep(state: GuardState, seen: Observation, rules: GuardRules): GuardStep {
  const reported = reportCrossings(notAhead(state, seen.now), seen, rules);
  const counted = countSaving(reported.state, seen);
  const noted = noteBeginning(counted.state, seen);
  const steered = seen.isLatest ? steer(noted, seen, rules) : { state: noted, actions: [] };
  return {
    state: steered.state,
    actions: [...reported.actions, ...counted.actions, ...steered.actions],
  };
}

/** When to check the state again without a change of the session; undefined: never. */
export function guardWakesAt({ phase, compacted }: GuardState): number | undefined {
  if (phase.kind === 'interrupting') return phase.since + interruptLimitMs;
  if (phase.kind === 'compacting') return phase.since + compactGraceMs;
  return compacted === null ? undefined : compacted.at + compactCooldownMs;
}

/** Clamps stored times to now, after the system clock was set back. */
function notAhead(state: GuardState, now: number): GuardState {
  const { compacted, phase } = state;
  const isAhead = 'since' in phase && phase.since > now;
  if (!isAhead && (compacted === null || compacted.at <= now)) return state;
  return {
    ...state,
    phase: isAhead ? { ...phase, since: now } : phase,
    compacted: compacted && { ...compacted, at: Math.min(compacted.at, now) },
  };
}

const levels: readonly ContextLevel[] = ['ok', 'warning', 'critical'];

/** A jump over both thresholds crosses both, and each crossing raises an alert. */
function reportCrossings(state: GuardState, { tokens }: Observation, rules: GuardRules): GuardStep {
  const level = contextState(tokens, rules);
  if (level === null || level === state.level) return { state, actions: [] };
  const crossed = levels.slice(levels.indexOf(state.level) + 1, levels.indexOf(level) + 1);
  const actions = crossed.map((each, index): GuardAction => {
    const crossing = state.crossings + index + 1;
    return { kind: 'alert', level: each as 'warning' | 'critical', crossing };
  });
  return {
    state: { ...state, level, crossings: state.crossings + crossed.length },
    actions: rules.alerts ? actions : [],
  };
}

function countSaving(state: GuardState, { tokens }: Observation): GuardStep {
  const before = state.toSave;
  // No context is empty after a compaction: 0 says that the size is not known.
  if (before === null || tokens === null || tokens === 0 || tokens === before) {
    return { state, actions: [] };
  }
  // A context that has grown was not compacted.
  const actions: GuardAction[] =
    tokens < before ? [{ kind: 'saved', tokensBefore: before, tokensAfter: tokens }] : [];
  return { state: { ...state, toSave: null }, actions };
}

function noteBeginning(state: GuardState, { status, statusSince }: Observation): GuardState {
  const { phase } = state;
  if (phase.kind !== 'compacting' || phase.hasBegun) return state;
  const hasBegun = status === 'working' || statusSince > phase.since;
  return hasBegun ? { ...state, phase: { ...phase, hasBegun } } : state;
}

// In these statuses there is no turn to resume.
const withoutTurn: ReadonlySet<SessionStatus> = new Set<SessionStatus>([
  'spawning',
  'done',
  'errored',
  'orphaned',
]);

function steer(state: GuardState, seen: Observation, rules: GuardRules): GuardStep {
  if (withoutTurn.has(seen.status) || !seen.canSteer) return rest(state);
  const level = contextState(seen.tokens, rules);
  switch (state.phase.kind) {
    case 'resting':
      return begin(state, seen, rules);
    case 'interrupting':
      if (seen.status === 'idle') {
        // The turn was interrupted in any case; without a prompt the agent would wait forever.
        const isSmall = level === 'ok' || level === 'warning';
        return isSmall ? rest(state, { kind: 'resume' }) : compact(state, seen, { resumes: true });
      }
      if (seen.now - state.phase.since < interruptLimitMs) return { state, actions: [] };
      return {
        state: { ...state, phase: { kind: 'nudging' } },
        actions: [{ kind: 'abandon' }],
      };
    case 'nudging':
      if (level === 'ok' || level === 'warning') return rest(state);
      if (seen.status !== 'idle' || !isCool(state, seen)) return { state, actions: [] };
      return compact(state, seen, { resumes: false });
    case 'compacting': {
      const { hasBegun, since, resumes } = state.phase;
      const isOver = hasBegun || seen.now - since >= compactGraceMs;
      if (seen.status !== 'idle' || !isOver) return { state, actions: [] };
      return resumes ? rest(state, { kind: 'resume' }) : begin(rest(state).state, seen, rules);
    }
  }
}

function begin(state: GuardState, seen: Observation, rules: GuardRules): GuardStep {
  const nothing = { state, actions: [] };
  if (contextState(seen.tokens, rules) !== 'critical' || !isCool(state, seen)) return nothing;
  // Most CLIs report their context size only with the next answer. Until then the old figure says
  // nothing about the last compaction.
  if (state.compacted?.tokens === seen.tokens) return nothing;
  if (seen.status === 'idle' && rules.autoCompact) return compact(state, seen, { resumes: false });
  if (seen.status !== 'working' || !seen.force) return nothing;
  return {
    state: { ...state, phase: { kind: 'interrupting', since: seen.now } },
    actions: [{ kind: 'interrupt' }],
  };
}

function compact(
  state: GuardState,
  { now, tokens }: Observation,
  { resumes }: { resumes: boolean },
): GuardStep {
  const phase: GuardPhase = { kind: 'compacting', since: now, hasBegun: false, resumes };
  return {
    state: { ...state, phase, compacted: { at: now, tokens }, toSave: tokens },
    actions: [{ kind: 'compact' }],
  };
}

function rest(state: GuardState, ...actions: GuardAction[]): GuardStep {
  if (state.phase.kind === 'resting') return { state, actions };
  return { state: { ...state, phase: { kind: 'resting' } }, actions };
}

function isCool({ compacted }: GuardState, { now }: Observation): boolean {
  return compacted === null || now - compacted.at >= compactCooldownMs;
}
