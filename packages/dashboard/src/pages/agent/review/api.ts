import type { DaemonSchema } from '@millrace/contract/daemon';
import { queryOptions } from '@tanstack/react-query';
import { requestJson } from '../../../api/request.js';

export type WorkAction = 'commit' | 'push' | 'open-pr' | 'rebase' | 'merge';
export type SessionDiff = DaemonSchema<'SessionDiff'>;
export type DiffFile = DaemonSchema<'DiffFile'>;
export type DiffHunk = DaemonSchema<'DiffHunk'>;

const at = (id: string) => `${location.origin}/api/v1/sessions/${encodeURIComponent(id)}`;

/** `version` changes when the agent starts or ends a turn, which is when files change. */
export const sessionDiff = (id: string, base: string, version: string) =>
  queryOptions({
    queryKey: ['session-diff', id, base, version],
    queryFn: () => {
      const query = base === '' ? '' : `?base=${encodeURIComponent(base)}`;
      return requestJson<SessionDiff>('GET', `${at(id)}/diff${query}`);
    },
    // Git reads the whole workspace for it.
    refetchInterval: false,
    refetchOnWindowFocus: false,
    retry: false,
  });

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
  requestJson('POST', `${at(id)}:${action}`, { body });
