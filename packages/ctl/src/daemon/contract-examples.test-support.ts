import type { DaemonSchema } from '@millrace/contract/daemon';
import { openApiDocument } from '@millrace/contract/documents';

type Shown =
  | 'BackendRow'
  | 'BranchStandings'
  | 'ConfigView'
  | 'Inbox'
  | 'InboxNote'
  | 'Insights'
  | 'Metrics'
  | 'MetricsHistory'
  | 'Pipeline'
  | 'PipelineList'
  | 'Plan'
  | 'Question'
  | 'QuestionList'
  | 'Registry'
  | 'SavingsReport'
  | 'SessionCommit'
  | 'SessionDiff'
  | 'SessionMerge'
  | 'SessionPullRequest'
  | 'SessionPush'
  | 'SessionRebase'
  | 'Session'
  | 'SessionList'
  | 'SpendRollup'
  | 'UsageDocument';

/** A copy of an example response of the contract. */
export function contractExample<Name extends Shown>(name: Name): DaemonSchema<Name> {
  const { examples } = openApiDocument('daemon').components as unknown as {
    examples: { [Each in Shown]: { value: DaemonSchema<Each> } };
  };
  return structuredClone(examples[name].value);
}
