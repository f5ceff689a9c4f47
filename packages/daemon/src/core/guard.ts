import type { DaemonSchema } from '@millrace/contract/daemon';

export type ContextLevel = 'ok' | 'warning' | 'critical';
type SessionStatus = DaemonSchema<'SessionStatus'>;

export interface Thresholds {
  warn: number;
  critical: number;
}

/** How a context size stands. Whoever is at a threshold has reached it; null is unknown. */
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
/** An agent that is idle this long after the command has nothing more to do about it. */
export const compactGraceMs = 30_000;

export interface GuardRules extends Thresholds {
  /** tokens.warn_alert */
  alerts: boolean;
  /** tokens.auto_compact */
  autoCompact: boolean;
}

/** An agent as it was seen at one moment. */
export interface Observation {
  now: number;
  status: SessionStatus;
  /** When it took this status. */
  statusSince: number;
  tokens: number | null;
  /** Somebody can type into it, and its command line can compact. */
  canSteer: boolean;
  /** It may be interrupted. */
  force: boolean;
  /** Nothing newer is known. What is past can still be told of, but not acted upon. */
  isLatest: boolean;
}

/** What the guard is about with one agent. */
export type GuardPhase =
  | { kind: 'resting' }
  /** Escape was pressed; it is to become idle. */
  | { kind: 'interrupting'; since: number }
  /** It could not be interrupted, and is asked to compact when it is next idle. */
  | { kind: 'nudging' }
  /** The command was sent; `resumes` when a turn was lost to it. */
  | { kind: 'compacting'; since: number; hasBegun: boolean; resumes: boolean };

/** All that the guard must remember of one agent. Plain JSON. */
export interface GuardState {
  /** The level that was told of last, or that the context has fallen to since. */
  level: ContextLevel;
  /** How often a threshold was crossed upward. */
  crossings: number;
  phase: GuardPhase;
  /** When it was last sent the compact command, and how large its context was then. */
  compacted: { at: number; tokens: number | null } | null;
  /** A context that should become smaller than this, if the compaction did anything. */
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
  /** The interrupt did not take. */
  | { kind: 'abandon' }
  | { kind: 'compact' }
  | { kind: 'resume' }
  | { kind: 'saved'; tokensBefore: number; tokensAfter: number };

export interface GuardStep {
  state: GuardState;
  actions: GuardAction[];
}

/** One step: what is to be remembered, and what is to be done now, in this order. */
export function guardStep(state: GuardState, seen: Observation, rules: GuardRules): GuardStep {
  const told = tellCrossings(notAhead(state, seen.now), seen, rules);
  const counted = countSaving(told.state, seen);
  const noted = noteBeginning(counted.state, seen);
  const steered = seen.isLatest ? steer(noted, seen, rules) : { state: noted, actions: [] };
  return {
    state: steered.state,
    actions: [...told.actions, ...counted.actions, ...steered.actions],
  };
}

/** When the state should be looked at again although nothing was heard; undefined: never. */
export function guardWakesAt({ phase, compacted }: GuardState): number | undefined {
  if (phase.kind === 'interrupting') return phase.since + interruptLimitMs;
  if (phase.kind === 'compacting') return phase.since + compactGraceMs;
  return compacted === null ? undefined : compacted.at + compactCooldownMs;
}

/** After the machine's clock was set back, nothing was done later than now. */
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

/** A leap over both thresholds crosses both, and each crossing is told of. */
function tellCrossings(state: GuardState, { tokens }: Observation, rules: GuardRules): GuardStep {
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

// Whoever ended or starts anew has no turn that could be taken up.
const afresh: ReadonlySet<SessionStatus> = new Set<SessionStatus>([
  'spawning',
  'done',
  'errored',
  'orphaned',
]);

function steer(state: GuardState, seen: Observation, rules: GuardRules): GuardStep {
  if (afresh.has(seen.status) || !seen.canSteer) return rest(state);
  const level = contextState(seen.tokens, rules);
  switch (state.phase.kind) {
    case 'resting':
      return begin(state, seen, rules);
    case 'interrupting':
      if (seen.status === 'idle') {
        // Its turn is lost in any case, and it would wait for ever.
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
  // Most command lines tell their context size with the next answer only. Until then the old
  // figure says nothing about what the last compaction did.
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
