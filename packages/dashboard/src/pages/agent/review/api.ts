import { queryOptions } from '@tanstack/react-query';
import type { WorkAction } from '../../../api/daemon-features.js';
import { requestJson } from '../../../api/request.js';

export interface DiffHunk {
  old_start: number;
  old_lines: number;
  new_start: number;
  new_lines: number;
  heading: string;
  lines: readonly string[];
}

export interface DiffFile {
  path: string;
  old_path: string | null;
  status: 'added' | 'modified' | 'deleted' | 'renamed' | 'copied' | 'type_changed';
  old_mode: string | null;
  new_mode: string | null;
  binary: boolean;
  additions: number;
  deletions: number;
  hunks: readonly DiffHunk[];
}

/** What a session changed since its branch left the base. */
export interface SessionDiff {
  branch: string | null;
  base: string | null;
  file_count: number;
  additions: number;
  deletions: number;
  truncated: boolean;
  files: readonly DiffFile[];
}

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
