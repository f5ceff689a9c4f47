import type { Alert, Once } from '../notify/alert.js';
import type { Inspection } from './inspection.js';

/** More commits behind the base than this is far behind. */
const farBehind = 10;

/** Alerts about a branch, each with its deduplication key. */
export function alertsOf(agentId: string, inspection: Inspection): { alert: Alert; once: Once }[] {
  const { standing, head, fork } = inspection;
  const { branch, base, ci, behind, merged } = standing;
  if (branch === null || head === null) return [];
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
      // One alert per commit, however many of its runs fail.
      once: { topic: 'branch-ci', value: `${branch} ${head}` },
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
      once: { topic: 'branch-merged', value: `${branch} ${head}` },
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
      once: { topic: 'branch-behind', value: `${branch} ${fork ?? ''}` },
    });
  }
  return alerts;
}
