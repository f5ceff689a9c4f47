import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { AlertSink } from '../notify/alert.js';
import type { Session } from '../sessions/port.js';
import { alertsOf } from './alerts.js';
import type { Look } from './look.js';

/** Raises what a round of looks has found. Nobody waits for it, and its failure stops nothing. */
export class BranchAlerts {
  /** What was raised since the start; what came before, the sink knows. */
  readonly #raised = new Map<string, string>();
  #latest: Promise<void> = Promise.resolve();

  constructor(
    private readonly sink: AlertSink,
    private readonly log: Log,
  ) {}

  /** Of the agents that work on one branch together, the first is told about. */
  consider(found: readonly { session: Session; look: Look }[]): void {
    const told = new Set<string>();
    for (const { session, look } of found) {
      const branch = JSON.stringify([session.repo ?? session.workdir, look.standing.branch]);
      for (const { alert, once } of alertsOf(session.id, look)) {
        if (told.has(`${branch} ${alert.kind}`)) continue;
        told.add(`${branch} ${alert.kind}`);
        const key = `${session.id} ${once.topic}`;
        if (this.#raised.get(key) === once.value) continue;
        this.#raised.set(key, once.value);
        this.#latest = this.#latest.then(() =>
          this.sink.raise(alert, once).catch((error: unknown) => {
            this.#raised.delete(key);
            const why = `an alert about a branch could not be raised: ${messageOf(error)}`;
            this.log.error({ err: error, kind: alert.kind, agent: session.id }, why);
          }),
        );
      }
    }
    const here = new Set(found.map(({ session }) => session.id));
    for (const key of this.#raised.keys()) {
      if (!here.has(key.slice(0, key.indexOf(' ')))) this.#raised.delete(key);
    }
  }

  settled(): Promise<void> {
    return this.#latest;
  }
}
