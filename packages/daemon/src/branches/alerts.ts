import type { Log } from '@millrace/kit/log';
import type { Alert, Once, AlertSink } from '../notify/alert-store.js';
import type { Inspection } from './inspection.js';
import type { Session } from '../sessions/port.js';

/** More commits behind the base than this is far behind. */
const farBehind = 10;

export interface BranchOwner {
  agentId: string;
  repository: string;
}

/** Alerts about a branch, each with its deduplication keys. */
export function alertsOf(
  { agentId, repository }: BranchOwner,
  inspection: Inspection,
): { alert: Alert; once: Once }[] {
  const { status, head, fork } = inspection;
  const { branch, base, ci, behind, merged } = status;
  if (branch === null || head === null) return [];
  // Agents come and go; the event is that of the branch.
  const onceFor = (topic: string, commit: string, ...keys: string[]): Once => {
    const value = `${branch} ${commit}`;
    return { topic, value, keys: [JSON.stringify([topic, repository, value]), ...keys] };
  };
  const alerts: { alert: Alert; once: Once }[] = [];
  if (ci.state === 'failure') {
    alerts.push({
      alert: {
        kind: 'ci_failed',
        severity: 'critical',
        title: `${ci.workflow ?? 'CI'} failed on ${branch}`,
        body: ci.url ?? '',
        agentId,
      },
      // One alert per commit, however many of its runs fail, and one per run: the branch may move
      // while CI is asked.
      once: onceFor('branch-ci', head, ...(ci.url ? [JSON.stringify(['ci-run', ci.url])] : [])),
    });
  }
  if (merged === true) {
    alerts.push({
      alert: {
        kind: 'branch_merged',
        severity: 'info',
        title: `${branch} is merged into ${base ?? 'its base'}`,
        body: 'The agent and its worktree can be removed.',
        agentId,
      },
      once: onceFor('branch-merged', head),
    });
  } else if (behind !== null && behind > farBehind) {
    alerts.push({
      alert: {
        kind: 'branch_behind',
        severity: 'warning',
        title: `${branch} is ${behind} commits behind ${base ?? 'its base'}`,
        body: 'Rebase or merge soon: conflicts grow with the distance.',
        agentId,
      },
      // After a rebase or merge the merge base differs, so the alert can be raised again.
      once: onceFor('branch-behind', fork ?? ''),
    });
  }
  return alerts;
}

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
