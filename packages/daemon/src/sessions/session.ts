import { formatTimestamp } from '@millrace/kit/units';
import {
  isEnded,
  judge,
  starting,
  withFacts,
  withStatus,
  type Entry,
  type Evidence,
  type Facts,
  type Handle,
} from '../core/session.js';
import type {
  Effect,
  SessionEvent,
  SessionState,
  Stage,
  StartKind,
  Step,
} from '../core/session-events.js';

/*
 * A session as a state machine: `step` takes an event and returns the session after it and the
 * effects to carry out. It has no clock and does no I/O; every event carries its time.
 *
 *   starting ──spawned──▶ running ──stop──▶ stopping
 *      │                     │                  │
 *      └──not_started────────┴──────ended───────┴──▶ ended ──settled──▶ restarting
 *      ▲                                               │                    │
 *      └───────────────────restart─────────────────────┴────────due─────────┘
 */

export function stageOf({ session, handle }: Entry): Stage {
  if (isEnded(session)) return handle.restartAt === null ? 'ended' : 'restarting';
  if (handle.isStopping) return 'stopping';
  return handle.startMark === null ? 'starting' : 'running';
}

/** An event that a stage has no rule for changes nothing. */
export function step(before: SessionState, event: SessionEvent): Step {
  const rules = table[event.type] as Partial<Record<Stage, Rule<SessionEvent>>>;
  const { entry = before, effects = [] } = rules[stageOf(before)]?.(before, event) ?? {};
  const isNewSession = entry.session !== before.session;
  const isNew = isNewSession || entry.handle !== before.handle;
  return {
    entry,
    effects: [
      ...(isNew ? [{ type: 'record' as const }] : []),
      ...(isNewSession ? [{ type: 'notify' as const }] : []),
      ...effects,
    ],
  };
}

interface Outcome {
  entry?: SessionState;
  effects?: Effect[];
}
type Rule<Event> = (entry: SessionState, event: Event) => Outcome;
type EventOf<Type extends SessionEvent['type']> = Extract<SessionEvent, { type: Type }>;

const table: {
  [Type in SessionEvent['type']]: Partial<Record<Stage, Rule<EventOf<Type>>>>;
} = {
  created: { starting: () => ({ effects: [{ type: 'start', how: 'first' }] }) },
  prepared: { starting: prepared },
  spawned: { starting: spawned, stopping: spawned },
  not_started: { starting: notStarted, stopping: notStarted },
  protocol: { running: observed, stopping: observed },
  transcript: { running: observed, stopping: observed },
  screen: { running: observed, stopping: observed },
  tick: { running: tick, stopping: tick },
  ended: { running: ended, stopping: ended },
  settled: { ended: planRestart },
  input: inEveryStage(input),
  written: { running: written, stopping: written },
  stop: { ...inEveryStage(noRestart), starting: stop, running: stop, stopping: stop },
  stopped: { stopping: stopped },
  restart: { ...inEveryStage(refuseRestart), ended: restart, restarting: restart },
  due: { restarting: revive },
  adopt: { starting: adopt, stopping: adopt },
  resume: {
    stopping: () => ({ effects: [{ type: 'stop' }] }),
    ended: planRestart,
    restarting: ({ handle }) => ({ effects: [{ type: 'schedule', at: handle.restartAt! }] }),
  },
  note: inEveryStage(note),
  merged: inEveryStage(merged),
};

function inEveryStage<Event>(rule: Rule<Event>): Record<Stage, Rule<Event>> {
  return { starting: rule, running: rule, stopping: rule, ended: rule, restarting: rule };
}

function prepared({ session, handle }: SessionState, event: EventOf<'prepared'>): Outcome {
  const { at, own, format, isPromptPending, outputStart } = event;
  const next: Handle = {
    ...handle,
    starts: handle.starts + 1,
    startedAt: at,
    inputAt: at,
    isPromptPending,
    format,
    outputStart,
  };
  delete next.undelivered;
  return {
    entry: { session: withFacts(session, { backend_session_id: own }, at), handle: next },
    effects: [{ type: 'launch' }],
  };
}

function spawned({ session, handle }: SessionState, event: EventOf<'spawned'>): Outcome {
  const { at, pid, startMark, isPrompted } = event;
  const running = withFacts(session, { pid }, at);
  const next = isPrompted ? withStatus(running, 'working', given, at) : running;
  return {
    entry: { session: next, handle: { ...handle, startMark } },
    effects: handle.isStopping ? [{ type: 'kill' }] : [],
  };
}

function notStarted({ session, handle }: SessionState, event: EventOf<'not_started'>): Outcome {
  const { at, reason } = event;
  const failed = withFacts(session, { pid: null, last_error: reason }, at);
  const next = withStatus(failed, 'errored', `it did not start: ${reason}`, at);
  return { entry: { session: next, handle } };
}

function observed(
  entry: SessionState,
  event: EventOf<'protocol' | 'transcript' | 'screen'>,
): Outcome {
  if (event.run !== entry.handle.starts) return {};
  const { type, at: _at, run: _run, turn, sign, ...reading } = event;
  const isOfTurn = turn === entry.handle.inputAt;
  const readings = { ...entry.readings, [type]: { ...reading, sign: isOfTurn ? sign : undefined } };
  return { entry: { ...entry, readings } };
}

/** The strongest reading decides. A turn that was cancelled to stop the agent is not over. */
function tick(entry: SessionState, event: EventOf<'tick'>): Outcome {
  const { readings = {}, session, handle } = entry;
  if (event.run !== handle.starts) return {};
  const isPast = event.turn !== handle.inputAt || handle.isStopping;
  const evidence = {
    facts: factsOf(entry),
    ...(!isPast && {
      event: readings.protocol?.sign,
      transcript: readings.transcript?.sign,
      pane: readings.screen?.sign,
      staleness: event.staleness,
    }),
  };
  const next = judged({ session, handle }, evidence, event.at);
  const isReady = handle.isPromptPending && readings.screen?.isReady;
  const wasTyped = next.session.last_error === notTaken;
  if (isUndeliverable(next, event.at) && (wasTyped || !isReady)) {
    const undelivered = wasTyped
      ? 'it was typed, but nothing shows that it was taken'
      : 'the program never showed that it was ready for it';
    return {
      entry: { ...next, handle: { ...next.handle, undelivered } },
      effects: [{ type: 'kill' }],
    };
  }
  return { entry: next, effects: isReady ? [{ type: 'write', keepsPrompt: false }] : [] };
}

/** A prompt that has not arrived after this time is undeliverable. */
const deliveryMs = 60_000;

/** While a question is open, the prompt waits for its answer. */
function isUndeliverable({ session, handle }: SessionState, at: number): boolean {
  return (
    handle.isPromptPending &&
    handle.undelivered === undefined &&
    !handle.isStopping &&
    session.status !== 'waiting_for_input' &&
    session.status !== 'rate_limited' &&
    at - Math.max(handle.startedAt, handle.inputAt) >= deliveryMs
  );
}

function ended(entry: SessionState, { at, run, exit }: EventOf<'ended'>): Outcome {
  const { session, handle } = entry;
  if (run !== handle.starts) return {};
  const wasStopped = handle.isStopping;
  const isEarly = handle.isPromptPending && !wasStopped && exit.code === 0 && !exit.limit;
  const undelivered = handle.undelivered ?? (isEarly ? 'the program ended before it' : undefined);
  const evidence = { facts: factsOf(entry), exit: { ...exit, wasStopped, undelivered } };
  return {
    entry: judged({ session, handle }, evidence, at),
    effects: [{ type: 'settle', pid: session.pid }],
  };
}

function factsOf({ readings }: SessionState): Facts {
  return { ...readings?.protocol?.facts, ...readings?.transcript?.facts };
}

/** Notes the turn whose limit was reported, so that it is reported once. */
function judged({ session, handle }: Entry, evidence: Evidence, at: number): SessionState {
  const next = judge(session, evidence, at);
  const isNewLimit = next.status === 'rate_limited' && handle.limitTurn !== handle.inputAt;
  return { session: next, handle: isNewLimit ? { ...handle, limitTurn: handle.inputAt } : handle };
}

function input({ session, handle }: SessionState, { kind }: EventOf<'input'>): Outcome {
  if (isEnded(session)) {
    const next = `restart it first, with \`ctl agent restart ${session.id}\`.`;
    return refuse(`The session has ended (${session.status}): ${next}`);
  }
  if (session.driver === 'headless' && kind !== 'permission') {
    return refuse(
      'The session is a headless run, which takes no input: wait for its end, or start one ' +
        'with the driver `tmux` or `acp`.',
    );
  }
  if (kind === 'text' && session.status === 'spawning') return refuse(stillSpawning);
  // An answer to a first-run dialog, such as for trust, leaves the first prompt to be sent.
  const isFirstRun =
    kind === 'text' ? session.status === 'waiting_for_input' : session.status !== 'idle';
  const keepsPrompt = handle.isPromptPending && kind !== 'permission' && isFirstRun;
  return { effects: [{ type: 'write', kind, keepsPrompt }] };
}

const notTaken = 'its prompt was typed, but nothing shows that it was taken';

function written({ session, handle }: SessionState, event: EventOf<'written'>): Outcome {
  const { at, inputAt, kind, isTaken, keepsPrompt } = event;
  if (kind === 'prompt' && keepsPrompt) {
    // It is typed again when the agent is ready, until it counts as undeliverable.
    return { entry: { session: withFacts(session, { last_error: notTaken }, at), handle } };
  }
  const trouble = isTaken ? {} : { last_error: notTaken };
  const fresh = withFacts(
    session.turn_error ? { ...session, turn_error: null } : session,
    trouble,
    at,
  );
  const next = withStatus(fresh, 'working', reasons[kind], at);
  return { entry: { session: next, handle: { ...handle, inputAt, isPromptPending: keepsPrompt } } };
}

function stop(entry: SessionState): Outcome {
  const { session, handle } = entry;
  // The pid of a process without a start mark may have been reused.
  const isOurs = session.pid !== null && handle.startMark !== null;
  return { ...noRestart(entry), effects: isOurs ? [{ type: 'kill' }] : [] };
}

function noRestart(entry: SessionState): Outcome {
  return { entry: { ...entry, handle: { ...entry.handle, isStopping: true, restartAt: null } } };
}

function stopped({ session, handle }: SessionState, { at }: EventOf<'stopped'>): Outcome {
  const over = withFacts(session, { pid: null }, at);
  return {
    entry: { session: withStatus(over, 'done', 'it was stopped', at), handle },
    effects: [{ type: 'settle', pid: null }],
  };
}

function refuseRestart({ session }: SessionState): Outcome {
  return session.status === 'spawning' ? refuse(stillSpawning) : {};
}

function restart(entry: SessionState, { at, how, text }: EventOf<'restart'>): Outcome {
  const reason = text === undefined ? 'it is restarted on request' : 'it goes on with a new text';
  return rewound(entry, { at, how, reason, autoRestarts: 0, text });
}

function revive(entry: SessionState, { at }: EventOf<'due'>): Outcome {
  const autoRestarts = entry.handle.autoRestarts + 1;
  return rewound(entry, { at, how: 'revived', reason: 'it is restarted by itself', autoRestarts });
}

/** Puts a session back to the beginning, to be started again. */
function rewound(
  { session, handle }: SessionState,
  start: {
    at: number;
    how: StartKind;
    reason: string;
    autoRestarts: number;
    text?: string | undefined;
  },
): Outcome {
  const { at, how, reason, autoRestarts, text } = start;
  const { text: _, ...rest } = handle;
  const fresh = starting(session, reason, at);
  return {
    entry: {
      session: { ...fresh, restart_count: session.restart_count + 1 },
      // Before the start there is no process to inspect.
      handle: {
        ...rest,
        startMark: null,
        isStopping: false,
        restartAt: null,
        autoRestarts,
        ...(text !== undefined && { text }),
      },
    },
    effects: [{ type: 'start', how }],
  };
}

/** An interrupted start: its process was found by its token, or is lost. */
function adopt({ session, handle }: SessionState, { at, found }: EventOf<'adopt'>): Outcome {
  if (handle.startMark !== null) return {};
  if (!found) {
    const reason = 'the daemon ended before it was started';
    const lost = withFacts(session, { pid: null, last_error: reason }, at);
    return { entry: { session: withStatus(lost, 'orphaned', reason, at), handle } };
  }
  const running = withFacts(session, { pid: found.pid }, at);
  const reason = 'it was found at work when the daemon came back';
  const next = handle.isPromptPending ? running : withStatus(running, 'working', reason, at);
  return { entry: { session: next, handle: { ...handle, startMark: found.startMark } } };
}

/** Plans the restart of a session that has ended, if it is to have one. */
function planRestart({ session, handle }: SessionState, { at }: { at: number }): Outcome {
  const delay = restartDelay({ session, handle }, at);
  if (delay === undefined) return {};
  const note =
    delay === 'never'
      ? `it was restarted ${maxAutoRestarts} times in a row and is left alone`
      : `it is restarted in ${Math.ceil(delay / 1000)} s`;
  if (session.status_reason?.endsWith(note)) return {};
  const reason = `${session.status_reason ?? 'it ended'}; ${note}`;
  const next = withFacts(session, { status_reason: reason }, at);
  if (delay === 'never') return { entry: { session: next, handle } };
  const restartAt = at + delay;
  const autoRestarts = restartsInARow({ session, handle });
  return {
    entry: { session: next, handle: { ...handle, autoRestarts, restartAt } },
    effects: [{ type: 'schedule', at: restartAt }],
  };
}

/** Maximum number of consecutive automatic restarts. */
export const maxAutoRestarts = 5;
const firstDelayMs = 2_000;
const maxDelayMs = 300_000;
/** An agent that has worked this long is not in a crash loop. */
const soundMs = 600_000;

/** Delay before an automatic restart; undefined when there is none. */
export function restartDelay(
  { session, handle }: Entry,
  now: number,
): number | 'never' | undefined {
  const { auto_restart, status, limited_until } = session;
  if (!auto_restart || handle.isStopping) return undefined;
  if (!['errored', 'orphaned', 'rate_limited'].includes(status)) return undefined;
  const before = restartsInARow({ session, handle });
  if (before >= maxAutoRestarts) return 'never';
  const backoff = Math.min(maxDelayMs, firstDelayMs * 2 ** before);
  const limit = limited_until === null ? 0 : Date.parse(limited_until) - now;
  return Math.max(backoff, limit);
}

function restartsInARow({ session, handle }: Entry): number {
  const ranMs = Date.parse(session.status_since) - handle.startedAt;
  return ranMs >= soundMs ? 0 : handle.autoRestarts;
}

function note(entry: SessionState, { at, facts }: EventOf<'note'>): Outcome {
  return { entry: { ...entry, session: withFacts(entry.session, facts, at) } };
}

/** Work after a merge is not merged, so a session that works is not changed. */
function merged(entry: SessionState, { at, isMerged }: EventOf<'merged'>): Outcome {
  const { session } = entry;
  if (session.status === 'working' || (!isMerged && !session.merged_at)) return {};
  const mergedAt = isMerged ? formatTimestamp(at) : null;
  return { entry: { ...entry, session: withFacts(session, { merged_at: mergedAt }, at) } };
}

const given = 'it was given its prompt';
const reasons = { text: 'it was sent input', answer: 'its question was answered', prompt: given };
const stillSpawning = 'The session is still spawning: wait until it works.';

function refuse(reason: string): Outcome {
  return { effects: [{ type: 'refuse', reason }] };
}
