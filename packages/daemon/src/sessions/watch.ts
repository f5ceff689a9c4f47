import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { PendingPermission } from '../acp-host/state.js';
import { isEnded, judge, type Entry } from '../core/session.js';
import { SharedRuns } from '../core/turns.js';
import type { SessionStore } from './session-store.js';
import type { Dialog } from './evidence/dialog.js';
import type { Driver, ProcessView } from './drivers/driver.js';
import { isTalking, Observation, type EvidenceParts } from './evidence/observation.js';
import { sessionDirectory } from './drivers/session-files.js';
import { endLeftovers } from './drivers/processes.js';

export interface WatchParts extends EvidenceParts {
  store: SessionStore;
  log: Log;
  clock: Clock;
  drivers: readonly Driver[];
  isStarting: (id: string) => boolean;
  /**
   * Called for an agent that is ready for its first prompt, if that was not passed at its start.
   */
  onReady: (id: string) => void;
  /**
   * Called with the dialog on the screen of an agent, before its status changes. True when the
   * dialog was answered without a person: then the rest of this inspection is ignored.
   */
  onDialog: (entry: Entry, dialog: Dialog | undefined) => Promise<boolean>;
  /** Likewise, which permissions an agent without a screen waits for. */
  onPermissions: (entry: Entry, pending: readonly PendingPermission[]) => Promise<boolean>;
  /** Called after the process of a session has ended. */
  onEnd: (id: string) => Promise<void>;
}

/** Inspection intervals for active and for quiet agents. */
const livelyMs = 300;
const quietMs = 1_500;

/** Inspects the running agents periodically, and stores the results. */
export class Watch {
  readonly #parts: WatchParts;
  readonly #observations = new Map<string, Observation>();
  readonly #inspections: SharedRuns<void>;
  #timer: Timer | undefined;
  #latest: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(parts: WatchParts) {
    this.#parts = parts;
    this.#inspections = new SharedRuns(() => this.#inspect());
  }

  /** Inspects now, and continues as long as an agent runs. */
  wake(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#timer?.cancel();
    this.#latest = this.#inspections.run().then(
      () => this.#schedule(),
      (error: unknown) => {
        this.#parts.log.error({ err: error }, 'failed to inspect agents');
        this.#schedule();
      },
    );
    return this.#latest;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#latest;
  }

  #schedule(): void {
    this.#timer?.cancel();
    const running = this.#running();
    if (this.#isClosed || running.length === 0) return;
    const isLively = running.some(({ session }) => this.#observations.get(session.id)?.isLively);
    const delay = isLively ? livelyMs : quietMs;
    this.#timer = this.#parts.clock.after(delay, () => void this.wake());
  }

  #running(): Entry[] {
    return this.#parts.store.all().filter(({ session }) => !isEnded(session));
  }

  async #inspect(): Promise<void> {
    const running = this.#running().filter(
      ({ session, handle }) => handle.startMark !== null && !this.#parts.isStarting(session.id),
    );
    for (const driver of this.#parts.drivers) {
      const own = running.filter(({ session }) => session.driver === driver.name);
      if (own.length === 0) continue;
      const views = await driver.inspect(own.map((entry) => this.#known(entry)));
      await Promise.all(own.map((entry) => this.#inspectOne(driver, entry, views)));
    }
  }

  #known({ session, handle }: Entry) {
    const directory = sessionDirectory(this.#parts.dataDir, session.id);
    const { token, startMark } = handle;
    return { id: session.id, directory, token, pid: session.pid, startMark };
  }

  async #inspectOne(
    driver: Driver,
    entry: Entry,
    views: ReadonlyMap<string, ProcessView>,
  ): Promise<void> {
    try {
      await this.#judge(driver, entry, views);
    } catch (error) {
      // A failure of one agent must not stop the inspection of the others.
      const { id } = entry.session;
      this.#parts.log.error({ err: error, session: id }, 'failed to inspect agent');
    }
  }

  async #judge(
    driver: Driver,
    entry: Entry,
    views: ReadonlyMap<string, ProcessView>,
  ): Promise<void> {
    const { id, pid } = entry.session;
    const { store, clock } = this.#parts;
    const view = views.get(id);
    if (!view) return;
    const observation = this.#observe(entry);
    const evidence = await observation.gather(entry, view, driver);
    const wasSeen = observation.wasAlive;
    if (!evidence.exit && (await this.#isAnswered(entry, driver, observation))) return;
    const after = await store.change(id, (now) => {
      // It was restarted during this inspection.
      if (now.handle.starts !== entry.handle.starts) return now;
      // A stop may have been requested during this inspection.
      const exit = evidence.exit && { ...evidence.exit, wasStopped: now.handle.isStopping };
      // An observation from before the last input says nothing about the new turn.
      // Nor is a turn over that was cancelled to stop the agent.
      const isPast = now.handle.inputAt !== entry.handle.inputAt || now.handle.isStopping;
      const seen = isPast ? { facts: evidence.facts, exit } : { ...evidence, exit };
      const session = judge(now.session, seen, clock.now());
      const isNewLimit =
        session.status === 'rate_limited' && now.handle.limitTurn !== now.handle.inputAt;
      const limitTurn = now.handle.inputAt;
      return { session, handle: isNewLimit ? { ...now.handle, limitTurn } : now.handle };
    });
    if (!after || after.handle.starts !== entry.handle.starts) return;
    if (!evidence.exit) {
      const isPending = after.handle.isPromptPending && isTalking(driver);
      if (isPending && observation.pane.isReady(after)) this.#parts.onReady(id);
      return;
    }
    this.#observations.delete(id);
    // Its remaining children are ended too, unless its pid may have been reused.
    if (pid !== null && wasSeen) await endLeftovers(pid, clock);
    await driver.release(id);
    this.#parts.requests.release(id);
    await this.#parts.onEnd(id);
  }

  /** Reports its requests; true when they were answered without a person. */
  #isAnswered(entry: Entry, driver: Driver, observation: Observation): Promise<boolean> {
    const { pane, permissions } = observation;
    if (isTalking(driver)) return this.#parts.onDialog(entry, pane.dialog);
    if (permissions) return this.#parts.onPermissions(entry, permissions);
    return Promise.resolve(false);
  }

  #observe(entry: Entry): Observation {
    const { id } = entry.session;
    const known = this.#observations.get(id);
    if (known?.starts === entry.handle.starts) return known;
    const fresh = new Observation(this.#parts, entry);
    this.#observations.set(id, fresh);
    return fresh;
  }
}
