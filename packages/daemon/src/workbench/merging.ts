import { fail } from '../core/api.js';
import type { Git } from './git.js';
import { unquotePath } from './parse-diff.js';

/**
 * Merges only in the object database: no working tree changes, so a failed merge leaves nothing
 * behind.
 */

/** The tree of a merge; refuses with MERGE_CONFLICT and the files. */
export async function mergedTree(
  git: Git,
  ours: string,
  theirs: string,
  what: string,
): Promise<string> {
  const options = ['--write-tree', '--name-only', '--no-messages'];
  const { code, stdout, said } = await git.run(['merge-tree', ...options, ours, theirs]);
  const [tree = '', ...names] = stdout.split('\n');
  if (code === 0) return tree;
  if (code === 1 && tree !== '') {
    const files = names.flatMap((name) => (name === '' ? [] : unquotePath(name)));
    throw conflict(what, [...new Set(files)]);
  }
  const why = code === 129 ? 'git 2.38 or later is needed' : said;
  throw fail('GIT_FAILED', `git merge-tree failed: ${why}`);
}

const maxNamedFiles = 5;

export function conflict(what: string, files: readonly string[]): Error {
  const named = files.slice(0, maxNamedFiles).join(', ');
  const more = files.length > maxNamedFiles ? ` and ${files.length - maxNamedFiles} more` : '';
  return fail(
    'MERGE_CONFLICT',
    `${what} conflicts in ${named}${more}. Nothing was changed. Resolve it in the workspace, or ` +
      'let the agent do it.',
    { members: { conflicts: files } },
  );
}

/** The committer when git has no identity configured, so that commits do not fail. */
export async function identityOf(git: Git): Promise<Readonly<Record<string, string>>> {
  const known = await git.maybe(['var', 'GIT_COMMITTER_IDENT']);
  if (known !== undefined) return {};
  const [name, email] = ['Millrace', 'millrace@localhost'];
  return {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
  };
}

export interface NewCommit {
  tree: string;
  parents: readonly string[];
  message: string;
  variables?: Readonly<Record<string, string>>;
}

export async function createCommit(git: Git, commit: NewCommit): Promise<string> {
  const { tree, parents, message, variables = {} } = commit;
  const args = ['commit-tree', tree, ...parents.flatMap((parent) => ['-p', parent])];
  return git.text(args, {
    input: `${message.trimEnd()}\n`,
    variables: { ...(await identityOf(git)), ...variables },
  });
}

/**
 * Applies the commits of a branch one by one on another commit, and returns the new tip. Merge
 * commits and commits that change nothing there are left out, as in `git rebase`.
 */
export async function replay(git: Git, range: { onto: string; head: string }, what: string) {
  const { onto, head } = range;
  const listed = await git.text(['rev-list', '--reverse', '--no-merges', `${onto}..${head}`]);
  const commits = listed.split('\n').flatMap((each) => each || []);
  let tip = onto;
  for (const commit of commits) tip = await pick(git, commit, tip, what);
  return { tip, count: commits.length };
}

async function pick(git: Git, commit: string, onto: string, what: string): Promise<string> {
  const parent = await git.commitOf(`${commit}^`);
  if (parent === onto) return commit;
  if (parent === undefined) {
    throw fail('GIT_FAILED', `${what} is not possible: the branch and the base share no history.`);
  }
  const tree = await git.text(['rev-parse', `${onto}^{tree}`]);
  // With the parent of the commit as merge base, the merge adds the changes of that commit alone.
  const stand = await createCommit(git, { tree, parents: [parent], message: 'merge base' });
  const picked = await mergedTree(git, stand, commit, what);
  if (picked === tree) return onto;
  const message = await git.text(['show', '--no-patch', ...plainShow, '--format=%B', commit]);
  const variables = await authorOf(git, commit);
  return createCommit(git, { tree: picked, parents: [onto], message, variables });
}

const plainShow = ['--no-show-signature'];

/** The author of a commit, for a copy of it. */
export async function authorOf(
  git: Git,
  commit: string,
): Promise<Readonly<Record<string, string>>> {
  const format = [...plainShow, '--date=raw', '--format=%an%x00%ae%x00%ad'];
  const shown = await git.text(['show', '--no-patch', ...format, commit]);
  const [name = '', email = '', date = ''] = shown.split('\0');
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_AUTHOR_DATE: `@${date}` };
}
