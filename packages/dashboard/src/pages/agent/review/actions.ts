import type { ActionResult, WorkAction } from './api.js';

/** In the order of their buttons. */
export const workActions: readonly WorkAction[] = ['commit', 'push', 'open-pr', 'rebase', 'merge'];

export const titles: Readonly<Record<WorkAction, string>> = {
  commit: 'Commit',
  push: 'Push',
  'open-pr': 'Open pull request',
  merge: 'Merge',
  rebase: 'Rebase',
};

const flags = new Set(['force', 'draft']);

/** The request of a form: empty fields are left out, so that the daemon's defaults apply. */
export function bodyOf(action: WorkAction, form: FormData): Record<string, string | boolean> {
  const body: Record<string, string | boolean> = {};
  for (const [name, value] of form) {
    if (typeof value !== 'string') continue;
    if (flags.has(name)) body[name] = true;
    // A squash or merge commit has a message; replayed commits have their own.
    else if (name === 'message' && action === 'merge' && form.get('strategy') === 'rebase')
      continue;
    else if (value.trim() !== '') body[name] = value.trim();
  }
  return body;
}

const short = (commit: string | undefined) => commit?.slice(0, 8) ?? '';

export function doneText(action: WorkAction, result: ActionResult): string {
  const { base, branch, commit, commit_count: replayed, file_count: files, remote } = result;
  switch (action) {
    case 'commit':
      return `Committed ${files === 1 ? '1 file' : `${files ?? 0} files`} as ${short(commit)}.`;
    case 'push':
      return `Pushed ${branch ?? 'the branch'} to ${remote ?? 'its remote'}.`;
    case 'open-pr':
      return 'Opened a pull request.';
    case 'merge':
      return `Merged into ${base ?? 'the base'} as ${short(commit)}.`;
    case 'rebase':
      return replayed === 0
        ? 'The branch is up to date.'
        : `Rebased on ${base ?? 'the base'}, now at ${short(commit)}.`;
  }
}
