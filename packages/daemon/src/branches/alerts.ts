import type { Alert, Once } from '../notify/alert.js';
import type { Inspection } from './inspection.js';

/** More commits behind the base than this is far behind. */
const farBehind = 10;

/** What the person in charge should hear of a branch, each with what tells it from a repetition. */
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
      // A commit fails once, however many of its runs do.
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
        body: 'The longer it waits, the harder it is to bring up to date.',
        agentId,
      },
      // Once it has been brought up to date it leaves the base at another commit.
      once: { topic: 'branch-behind', value: `${branch} ${fork ?? ''}` },
    });
  }
  return alerts;
}
