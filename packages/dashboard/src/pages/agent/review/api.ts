import type { DaemonSchema } from '@millrace/contract/daemon';
import { queryOptions } from '@tanstack/react-query';
import { daemon } from '../../../api/client.js';

export type WorkAction = 'commit' | 'push' | 'open-pr' | 'rebase' | 'merge';
export type SessionDiff = DaemonSchema<'SessionDiff'>;
export type DiffFile = DaemonSchema<'DiffFile'>;
export type DiffHunk = DaemonSchema<'DiffHunk'>;

/** `version` changes when the agent starts or ends a turn, which is when files change. */
export const sessionDiff = (id: string, base: string, version: string) =>
  queryOptions({
    queryKey: ['session-diff', id, base, version],
    queryFn: () =>
      daemon.call('getSessionDiff', { path: { id }, query: base === '' ? {} : { base } }),
    // Git reads the whole workspace for it.
    refetchInterval: false,
    refetchOnWindowFocus: false,
    retry: false,
  });

const operations = {
  commit: 'commitSession',
  push: 'pushSession',
  'open-pr': 'openPullRequest',
  rebase: 'rebaseSession',
  merge: 'mergeSession',
} as const satisfies Record<WorkAction, string>;

/** Fields of the answers that the page shows. */
export interface ActionResult {
  commit?: string;
  base?: string | null;
  branch?: string | null;
  remote?: string;
  url?: string;
  file_count?: number;
  commit_count?: number;
}

export const runAction = (id: string, action: WorkAction, body: object): Promise<ActionResult> =>
  daemon.call(operations[action], { path: { id }, body });
