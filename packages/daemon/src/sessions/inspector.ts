import type { Log } from '@millrace/kit/log';
import type { Entry } from '../core/session.js';
import type { Driver, ProcessView } from './drivers/driver.js';
import { sessionDirectory } from './drivers/session-files.js';
import { Observation, type EvidenceParts, type Finding } from './evidence/observation.js';
import type { Asks } from './pending-questions.js';
import type { SessionEvent } from './session-events.js';

/** What one inspection of an agent found. */
export interface Inspection {
  entry: Entry;
  events: SessionEvent[];
  asks: Asks | undefined;
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
    if (found.exit) return { entry, events, asks: undefined };
    if (pane) return { entry, events, asks: { dialog: pane.dialog } };
    return { entry, events, asks: permissions && { permissions } };
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
