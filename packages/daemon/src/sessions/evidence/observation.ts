import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { HostState, PendingPermission } from '../../acp-host/state.js';
import { contextState, thresholdsFor } from '../../core/guard.js';
import type { Evidence, Exit, Facts, Sign, Entry } from '../../core/session.js';
import { AcpDriver } from '../drivers/acp.js';
import { acpFacts, acpSign, waitingSign } from './acp-evidence.js';
import { rulesOf, usesPermissionTool } from '../cli/command-lines.js';
import type { SessionSettings } from '../cli/settings.js';
import type { Dialog } from './dialog.js';
import type { Driver, ProcessView, TalkingDriver } from '../drivers/driver.js';
import { PaneWatch } from './pane-watch.js';
import { OutputReader } from './output-reader.js';
import { OutputLog, sessionDirectory, isFullScreen, saveScreen } from '../drivers/session-files.js';
import type { PermissionRequests } from '../../permission-tool/requests.js';
import { TranscriptWatch, type TranscriptTail, type TranscriptParts } from './transcript.js';
import type { SessionEvent } from '../../core/session-events.js';

export interface EvidenceParts extends TranscriptParts {
  clock: Clock;
  dataDir: string;
  settings: SessionSettings;
  requests: PermissionRequests;
}

/** What one inspection found. */
export interface Finding extends Omit<Evidence, 'exit'> {
  exit?: Omit<Exit, 'wasStopped'> | undefined;
  /** Facts of the transcript; `facts` has those that the agent reported itself. */
  written?: Facts | undefined;
}

/** What an agent asks: the dialog on its screen, or the permissions that it waits for. */
export type OpenRequest =
  { dialog: Dialog | undefined } | { permissions: readonly PendingPermission[] };

type ContextFacts = Partial<Pick<TranscriptTail, 'contextTokens' | 'contextWindow' | 'model'>>;

/** No output for this long is reported; it does not change the status. */
const staleMs = 600_000;
const livelyMs = 5_000;
/** After this time an idle prompt overrides a transcript without the end of its turn. */
const restMs = 10_000;

/** State of a live agent between two inspections. */
export class Observation {
  readonly starts: number;
  /** The session's own directory. */
  readonly directory: string;
  readonly log: OutputLog;
  /** Of an agent with a screen. */
  readonly pane: PaneWatch | undefined;
  readonly #listener: OutputReader;
  readonly #transcript: TranscriptWatch;
  #lastOutputAt: number;
  /** The permissions that it waits for; undefined when its driver does not say. */
  permissions: readonly PendingPermission[] | undefined;
  /** This daemon has seen it run. */
  wasAlive: boolean;

  constructor(
    private readonly parts: EvidenceParts,
    { session, handle }: Entry,
  ) {
    this.starts = handle.starts;
    this.directory = sessionDirectory(parts.dataDir, session.id);
    this.log = new OutputLog(this.directory);
    if (session.driver === 'tmux') this.pane = new PaneWatch(parts);
    this.#listener = new OutputReader(this.log, handle.format, handle.outputStart);
    this.#transcript = new TranscriptWatch(parts);
    this.#lastOutputAt = parts.clock.monotonic();
    this.wasAlive = false;
  }

  /** Has it just said something? */
  get isLively(): boolean {
    return this.parts.clock.monotonic() - this.#lastOutputAt < livelyMs;
  }

  /** Collects everything about the agent in one inspection. */
  async gather(entry: Entry, view: ProcessView, driver: Driver): Promise<Finding> {
    const { session, handle } = entry;
    const isOver = view.pid === undefined;
    if (!isOver) this.wasAlive = true;
    const isNews = this.#listener.listen({ isOver });
    if (isNews) this.#lastOutputAt = this.parts.clock.monotonic();
    if (driver instanceof AcpDriver) return this.#gatherAcp(entry, view, driver);
    const facts = this.#reported(entry);
    const tail = await this.#transcript.inspect(withFactsOf(entry, facts), { isOver });
    const written = this.#written(entry, tail);
    if (isOver) return { facts, written, exit: await this.#exit(entry, view, driver) };
    if (isTalking(driver)) await this.pane?.inspect(driver, entry, this.log.end());
    this.log.trim();
    if (driver.name === 'headless' && usesPermissionTool(handle.cli)) {
      this.permissions = this.parts.requests.pending(this.directory);
    }
    const pane = this.pane?.sign(entry);
    return {
      facts,
      written,
      event: this.#event(isNews),
      transcript: this.pane && this.#turn(this.pane, tail, handle.inputAt, pane),
      pane,
      staleness: this.#staleness(session.status) ?? this.pane?.blindSign(entry),
    };
  }

  /** Over the protocol nothing is guessed: no screen and no transcript is read. */
  async #gatherAcp(entry: Entry, view: ProcessView, driver: AcpDriver): Promise<Finding> {
    const { session, handle } = entry;
    const { clock, settings } = this.parts;
    const limitRetryMs = settings.values.backends.limit_retry;
    const state = driver.state(session.id);
    this.permissions = state?.permissions;
    const facts = state ? this.#factsOf(entry, state) : {};
    if (view.pid === undefined) return { facts, exit: await this.#exit(entry, view, driver) };
    this.log.trim();
    const when = { cli: handle.cli, now: clock.now(), limitRetryMs };
    return { facts, event: state && acpSign(state, when) };
  }

  #factsOf(entry: Entry, state: HostState): Facts {
    const { sessionId, model, contextTokens, contextWindow } = state;
    const acp = acpFacts(state);
    const isSame = JSON.stringify(acp) === JSON.stringify(entry.session.acp);
    return {
      ...(sessionId !== null && { backend_session_id: sessionId }),
      ...(model !== null && { model }),
      ...(!isSame && { acp }),
      ...this.#context(entry, {
        model: model ?? undefined,
        contextTokens: contextTokens ?? undefined,
        contextWindow: contextWindow ?? undefined,
      }),
    };
  }

  async #exit(
    { session, handle }: Entry,
    view: ProcessView,
    driver: Driver,
  ): Promise<Finding['exit']> {
    const { clock, settings } = this.parts;
    const limitRetryMs = settings.values.backends.limit_retry;
    const end = view.exit ?? { code: null, signal: null };
    // A pane outlives its program, and shows the text, of which the output has only drawing commands.
    const screen = isTalking(driver) ? await driver.screen(session.id) : undefined;
    if (screen !== undefined && isFullScreen(handle.cli)) {
      saveScreen(this.directory, screen);
    }
    const { limit } = rulesOf(settings.values.backends.extra, session.backend) ?? {};
    const when = { now: clock.now(), limitRetryMs, limit };
    const verdict = this.#listener.verdict(handle.cli, { ...end, screen }, when);
    return { ...end, ...verdict, isLost: view.exit === undefined };
  }

  #reported(entry: Entry): Facts {
    const { sessionId, model, contextTokens, contextWindow } = this.#listener.seen;
    return {
      ...(sessionId !== undefined && { backend_session_id: sessionId }),
      ...(model !== undefined && { model }),
      ...this.#context(entry, { model, contextTokens, contextWindow }),
    };
  }

  #written(entry: Entry, tail: (TranscriptTail & { id: string }) | undefined): Facts {
    if (!tail) return {};
    return {
      backend_session_id: tail.id,
      ...(tail.model !== undefined && { model: tail.model }),
      ...this.#context(entry, tail),
    };
  }

  #context(
    { session, handle }: Entry,
    { contextTokens: tokens, contextWindow, model }: ContextFacts,
  ): Facts {
    const limits = this.parts.settings.values.tokens;
    const names = [model, session.model, handle.model];
    const window =
      contextWindow ?? windowByName(names) ?? this.pane?.contextWindow ?? session.context_window;
    return {
      ...(window && { context_window: window }),
      ...(tokens !== undefined && {
        context_tokens: tokens,
        context_state: contextState(tokens, thresholdsFor(limits, window)),
      }),
    };
  }

  #event(isNews: boolean): Sign | undefined {
    const [permission] = this.permissions ?? [];
    if (permission) return waitingSign(permission);
    const { doing } = this.#listener.seen;
    return isNews && doing !== undefined ? { status: 'working', reason: doing } : undefined;
  }

  /** The transcript's view of the turn that the last input started. */
  #turn(
    shown: PaneWatch,
    tail: TranscriptTail | undefined,
    inputAt: number,
    pane?: Sign,
  ): Sign | undefined {
    if (!tail?.turn || tail.turn.at < inputAt) return undefined;
    const { sign, at } = tail.turn;
    const isAtRest = pane?.status === 'idle' && shown.quietMs > restMs;
    // A dialog blocks the agent before the transcript mentions it.
    const isAsking = shown.dialog !== undefined && pane?.status !== 'working';
    if (sign.status === 'working' && (isAtRest || isAsking)) return undefined;
    if (sign.status !== 'rate_limited') return sign;
    const limitedUntil = Math.max(
      at + this.parts.settings.values.backends.limit_retry,
      sign.limitedUntil ?? 0,
    );
    if (this.parts.clock.now() < limitedUntil) return { ...sign, limitedUntil };
    const reason = 'its limit is over and its prompt is empty';
    return { status: 'idle', reason, failure: sign.reason };
  }

  #staleness(status: string): Sign | undefined {
    if (status !== 'working' || this.parts.clock.monotonic() - this.#lastOutputAt < staleMs) return;
    return { status: 'working', reason: 'no output for over 10 minutes' };
  }
}

export function isTalking(driver: Driver): driver is TalkingDriver {
  return 'paste' in driver;
}

/** The backend's own session may have been reported a moment ago. */
function withFactsOf(entry: Entry, facts: Facts): Entry {
  return { ...entry, session: { ...entry.session, ...facts } };
}

/** Claude marks a model with the large window in its name: `claude-opus-4-8[1m]`. */
export function windowByName(names: readonly (string | null | undefined)[]): number | undefined {
  return names.some((name) => name?.toLowerCase().endsWith('[1m]')) ? 1_000_000 : undefined;
}

/** What one inspection of an agent found. */
export interface Inspection {
  entry: Entry;
  events: SessionEvent[];
  request: OpenRequest | undefined;
}

export interface InspectorParts extends EvidenceParts {
  log: Log;
  drivers: readonly Driver[];
}

/** Observes running agents, and keeps what it knows about each between inspections. */
export class Inspector {
  readonly #observations = new Map<string, Observation>();

  constructor(private readonly parts: InspectorParts) {}

  /** Inspects agents with a process; a failure of one does not stop the inspection of others. */
  async inspect(
    running: readonly Entry[],
    onFound: (inspection: Inspection) => Promise<void>,
  ): Promise<void> {
    for (const driver of this.parts.drivers) {
      const own = running.filter(({ session }) => session.driver === driver.name);
      if (own.length === 0) continue;
      const views = await driver.inspect(own.map((entry) => this.#known(entry)));
      const inspectOne = async (entry: Entry) => {
        const { id } = entry.session;
        const view = views.get(id);
        try {
          if (view) await onFound(await this.#observe(driver, entry, view));
        } catch (error) {
          this.parts.log.error({ err: error, session: id }, 'failed to inspect agent');
        }
      };
      await Promise.all(own.map(inspectOne));
    }
  }

  /** Has one of them just written something? */
  isLively(running: readonly Entry[]): boolean {
    return running.some(({ session }) => this.#observations.get(session.id)?.isLively);
  }

  /** Forgets an agent that has ended; true when it was seen running. */
  forget(id: string): boolean {
    const observation = this.#observations.get(id);
    this.#observations.delete(id);
    return observation?.wasAlive ?? false;
  }

  #known({ session, handle }: Entry) {
    const directory = sessionDirectory(this.parts.dataDir, session.id);
    const { token, startMark } = handle;
    return { id: session.id, directory, token, pid: session.pid, startMark };
  }

  async #observe(driver: Driver, entry: Entry, view: ProcessView): Promise<Inspection> {
    const observation = this.#observation(entry);
    const found = await observation.gather(entry, view, driver);
    const { pane, permissions } = observation;
    const isReady = pane?.isReady(entry);
    const events = eventsOf(found, entry, this.parts.clock.now(), isReady);
    if (found.exit) return { entry, events, request: undefined };
    if (pane) return { entry, events, request: { dialog: pane.dialog } };
    return { entry, events, request: permissions && { permissions } };
  }

  #observation(entry: Entry): Observation {
    const { id } = entry.session;
    const known = this.#observations.get(id);
    if (known?.starts === entry.handle.starts) return known;
    const fresh = new Observation(this.parts, entry);
    this.#observations.set(id, fresh);
    return fresh;
  }
}

/** The readings, and then the tick, or the end of the process. */
function eventsOf(
  finding: Finding,
  { handle }: Entry,
  at: number,
  isReady: boolean | undefined,
): SessionEvent[] {
  const { event, facts, transcript, written, pane, staleness, exit } = finding;
  const observed = { at, run: handle.starts, turn: handle.inputAt };
  return [
    { type: 'protocol', sign: event, facts, ...observed },
    { type: 'transcript', sign: transcript, facts: written, ...observed },
    ...(isReady === undefined
      ? []
      : [{ type: 'screen' as const, sign: pane, isReady, ...observed }]),
    exit ? { type: 'ended', exit, ...observed } : { type: 'tick', staleness, ...observed },
  ];
}
