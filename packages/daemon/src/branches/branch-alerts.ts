import type { Log } from '@millrace/kit/log';
import type { AlertSink } from '../notify/alert.js';
import type { Session } from '../sessions/port.js';
import { alertsOf } from './alerts.js';
import type { Inspection } from './inspection.js';

/** Raises alerts for the findings of a round, in the background; failures are logged. */
export class BranchAlerts {
  /** Alerts raised since the start; the sink has those raised before. */
  readonly #raised = new Map<string, string>();
  #latest: Promise<void> = Promise.resolve();

  constructor(
    private readonly sink: AlertSink,
    private readonly log: Log,
  ) {}

  /** Agents that share a branch get one alert, for the first of them. */
  consider(found: readonly { session: Session; inspection: Inspection }[]): void {
    const raisedKinds = new Set<string>();
    for (const { session, inspection } of found) {
      const repository = session.repo ?? session.workdir;
      const branch = JSON.stringify([repository, inspection.status.branch]);
      const owner = { agentId: session.id, repository };
      for (const { alert, once } of alertsOf(owner, inspection)) {
        if (raisedKinds.has(`${branch} ${alert.kind}`)) continue;
        raisedKinds.add(`${branch} ${alert.kind}`);
        const key = `${session.id} ${once.topic}`;
        if (this.#raised.get(key) === once.value) continue;
        this.#raised.set(key, once.value);
        this.#latest = this.#latest.then(() =>
          this.sink.raise(alert, once).catch((error: unknown) => {
            this.#raised.delete(key);
            const fields = { err: error, kind: alert.kind, agent: session.id };
            this.log.error(fields, 'failed to raise branch alert');
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
