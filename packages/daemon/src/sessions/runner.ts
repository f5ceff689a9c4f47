import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { isEnded } from '../core/session.js';
import { SharedRuns, Turns } from '../core/turns.js';
import type { AcpDriver } from './drivers/acp.js';
import type { Driver } from './drivers/driver.js';
import { endFamily, endLeftovers, isSameProcess, type HeadlessDriver } from './drivers/headless.js';
import { sessionDirectory } from './drivers/session-files.js';
import type { TmuxDriver } from './drivers/tmux.js';
import type { AgentInput } from './input.js';
import { Inspector, type Inspection, type InspectorParts } from './evidence/observation.js';
import { planLaunch, type LaunchParts } from './launch.js';
import type { PendingQuestions } from './pending-questions.js';
import type { Session } from './port.js';
import { stageOf } from './session.js';
import type { SessionEvent, SessionState, StartKind, Step } from '../core/session-events.js';
import type { SessionStore } from './session-store.js';
import { ruleTrouble, setUpWorktree, worktreeRulesOf } from './drivers/worktree-rules.js';

export interface RunnerParts extends LaunchParts, Omit<InspectorParts, 'drivers'> {
  clock: Clock;
  log: Log;
  store: SessionStore;
  drivers: { headless: HeadlessDriver; tmux: TmuxDriver; acp: AcpDriver };
  input: AgentInput;
  pending: PendingQuestions;
}

type Distributed<Event> = Event extends SessionEvent ? Omit<Event, 'at'> : never;
/** The time is added when it is fed. */
type Untimed = Distributed<SessionEvent> | SessionEvent;

/** Inspection intervals for active and for quiet agents. */
const livelyMs = 300;
const quietMs = 1_500;

/** Feeds events to the state machine of each session, and carries out the effects. */
export class SessionRunner {
  readonly #inspector: Inspector;
  /** Serializes starts and stops of the agent of a session. */
  readonly #turns = new Turns();
  /** Starts that are under way, and first prompts that are being sent. */
  readonly #starts = new Map<string, Promise<void>>();
  readonly #prompts = new Map<string, Promise<void>>();
  readonly #setups = new Map<string, AbortController>();
  readonly #restarts = new Map<string, Timer>();
  readonly #inspections = new SharedRuns(() => this.#inspect());
  #latestInspection: Promise<void> = Promise.resolve();
  #nextInspection: Timer | undefined;
  #isClosed = false;

  constructor(private readonly parts: RunnerParts) {
    this.#inspector = new Inspector({ ...parts, drivers: Object.values(parts.drivers) });
  }

  /** Is a process being started for it right now? */
  isStarting(id: string): boolean {
    return this.#starts.has(id);
  }

  /** Starts and stops of one agent happen one after the other. */
  inTurn<Result>(id: string, work: () => Promise<Result>): Promise<Result> {
    return this.#turns.in(id, work);
  }

  /** Resolves when nothing is under way; agents run on. */
  async close(): Promise<void> {
    this.#cancelRestarts();
    for (const setup of this.#setups.values()) setup.abort();
    await Promise.all(this.#starts.values());
    this.#isClosed = true;
    this.#nextInspection?.cancel();
    await this.#latestInspection;
    await Promise.all(this.#prompts.values());
    this.#cancelRestarts();
  }

  #cancelRestarts(): void {
    for (const timer of this.#restarts.values()) timer.cancel();
  }

  /** Applies events that happen now, and carries out the effects. */
  async feed(id: string, ...events: Untimed[]): Promise<Step | undefined> {
    const at = this.parts.clock.now();
    const after = await this.parts.store.feed(
      id,
      events.map((event) => ({ at, ...event })),
    );
    if (after) await this.#carryOut(id, after);
    return after;
  }

  /** The store records and notifies, and `#launch` launches. */
  async #carryOut(id: string, { entry, effects }: Step): Promise<void> {
    for (const effect of effects) {
      switch (effect.type) {
        case 'start':
          this.#start(id, effect.how);
          break;
        case 'write':
          if (!this.#prompts.has(id)) this.#sendPrompt(id, entry);
          break;
        case 'kill':
          await this.#kill(entry);
          break;
        case 'settle':
          await this.#settle(entry, effect.pid);
          break;
        case 'schedule':
          this.#schedule(id, effect.at);
          break;
        case 'stop':
          this.#inTurnLater(id, () => this.end(id), 'failed to stop agent');
          break;
        default:
      }
    }
  }

  #start(id: string, how: StartKind): void {
    const start = this.#launch(id, how)
      .catch(async (error: unknown) => {
        this.parts.log.error({ err: error, session: id }, 'failed to start session');
        const reason = 'internal error, see the daemon log';
        await this.feed(id, { type: 'not_started', reason });
      })
      .finally(() => {
        this.#starts.delete(id);
        void this.wake();
      });
    this.#starts.set(id, start);
  }

  async #launch(id: string, how: StartKind): Promise<void> {
    const entry = this.parts.store.get(id);
    if (!entry) return;
    const trouble = await this.#setUp(entry);
    const plan = trouble ?? (await planLaunch(this.parts, entry, how));
    if ('failure' in plan) {
      await this.feed(id, { type: 'not_started', reason: plan.failure });
      return;
    }
    const prepared = await this.feed(id, { type: 'prepared', ...plan.run });
    if (!prepared?.effects.some(({ type }) => type === 'launch')) return;
    const started = await this.#driverOf(entry.session).start(plan.launch);
    await this.feed(
      id,
      'failure' in started
        ? { type: 'not_started', reason: started.failure }
        : { type: 'spawned', ...started, isPrompted: plan.isPrompted },
    );
  }

  /** Prepares a new worktree as its repository says. */
  async #setUp({ session, handle }: SessionState): Promise<{ failure: string } | undefined> {
    const { id, worktree } = session;
    if (worktree === null || !handle.worktree) return undefined;
    const { settings, clock, dataDir, variablesFor } = this.parts;
    const { root } = handle.worktree;
    const abort = new AbortController();
    this.#setups.set(id, abort);
    try {
      const rules = await worktreeRulesOf(settings.values, root);
      if (!rules.setup && !rules.copy) return undefined;
      await this.feed(id, { type: 'note', facts: { status_reason: 'its worktree is set up' } });
      const directory = sessionDirectory(dataDir, id);
      const environment = { ...variablesFor(''), MILLRACE_AGENT_ID: id };
      const { signal } = abort;
      const parts = { root, worktree, directory, environment, clock, signal };
      const failure = await setUpWorktree(rules, parts);
      return failure === undefined ? undefined : { failure };
    } catch (error) {
      return { failure: ruleTrouble(error) };
    } finally {
      this.#setups.delete(id);
    }
  }

  /** Ends the agent's process and all its descendants; without one, no restart follows. */
  async end(id: string): Promise<void> {
    this.#setups.get(id)?.abort();
    await this.#starts.get(id);
    const after = await this.feed(id, { type: 'stop' });
    if (!after || isEnded(after.entry.session)) return;
    await this.wake();
    // The process has ended, but tmux may not report it yet.
    await this.feed(id, { type: 'stopped' });
  }

  async #kill({ session, handle }: SessionState): Promise<void> {
    const { id, pid } = session;
    // The pid may have been reused.
    if (!(await isSameProcess(pid!, handle.startMark!))) return;
    try {
      await this.#driverOf(session).cancelTurn?.(id);
    } catch (error) {
      // Its process is ended all the same.
      this.parts.log.warn({ err: error, session: id }, 'failed to cancel turn');
    }
    await endFamily(pid!, this.parts.clock);
  }

  async #settle({ session }: SessionState, pid: number | null): Promise<void> {
    const { id } = session;
    const wasSeen = this.#inspector.forget(id);
    // Its remaining children are ended too, unless its pid may have been reused.
    if (pid !== null && wasSeen) await endLeftovers(pid, this.parts.clock);
    await this.#driverOf(session).release(id);
    this.parts.requests.release(sessionDirectory(this.parts.dataDir, id));
    await this.feed(id, { type: 'settled' });
  }

  #schedule(id: string, restartAt: number): void {
    if (this.#isClosed) return;
    const { clock } = this.parts;
    this.#restarts.get(id)?.cancel();
    const timer = clock.after(Math.max(0, restartAt - clock.now()), () => {
      this.#restarts.delete(id);
      const revive = async () => {
        await this.feed(id, { type: 'due' });
        await this.#starts.get(id);
      };
      this.#inTurnLater(id, revive, 'failed to restart agent');
    });
    this.#restarts.set(id, timer);
  }

  /** Sends an agent its first prompt, if it could not be passed at its start. */
  #sendPrompt(id: string, entry: SessionState): void {
    const inputAt = this.parts.clock.now();
    const work = this.parts.input
      .say(entry, entry.handle.text ?? entry.session.prompt)
      .then(async (isTaken) => {
        // Where a screen says nothing, it is not typed twice.
        const keepsPrompt = !isTaken && !this.parts.input.isBlind(entry);
        const input = { inputAt, kind: 'prompt' as const, isTaken, keepsPrompt };
        await this.feed(id, { type: 'written', ...input });
        void this.wake();
      })
      .catch((error: unknown) => {
        this.parts.log.warn({ err: error, session: id }, 'failed to send prompt');
      })
      .finally(() => this.#prompts.delete(id));
    this.#prompts.set(id, work);
  }

  /** Inspects the agents now, and continues as long as one runs. */
  wake(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#nextInspection?.cancel();
    this.#latestInspection = this.#inspections
      .run()
      .catch((error: unknown) => {
        this.parts.log.error({ err: error }, 'failed to inspect agents');
      })
      .then(() => this.#scheduleInspection());
    return this.#latestInspection;
  }

  #scheduleInspection(): void {
    this.#nextInspection?.cancel();
    const live = this.parts.store.all().filter(({ session }) => !isEnded(session));
    if (this.#isClosed || live.length === 0) return;
    const delay = this.#inspector.isLively(live) ? livelyMs : quietMs;
    this.#nextInspection = this.parts.clock.after(delay, () => void this.wake());
  }

  #inspect(): Promise<void> {
    const running = this.parts.store.all().filter((entry) => {
      const isLive = ['running', 'stopping'].includes(stageOf(entry));
      return isLive && entry.handle.startMark !== null && !this.#starts.has(entry.session.id);
    });
    return this.#inspector.inspect(running, (found) => this.#take(found));
  }

  /** What was answered without a person is inspected again. */
  async #take({ entry, events, request }: Inspection): Promise<void> {
    if (request && (await this.parts.pending.observe(entry, request))) return;
    await this.feed(entry.session.id, ...events);
  }

  #driverOf({ driver }: Session): Driver {
    return this.parts.drivers[driver];
  }

  #inTurnLater(id: string, work: () => Promise<void>, failure: string): void {
    this.inTurn(id, work).catch((error: unknown) => {
      this.parts.log.error({ err: error, session: id }, failure);
    });
  }
}
