import type { DaemonSchema } from '@millrace/contract/daemon';
import { fail } from '../core/api.js';
import { createCommit, mergedTree, replay } from './merging.js';
import type { Git } from './git.js';
import { unquotePath } from './parse-diff.js';
import { baseOf, type Workspace } from './workspace.js';

/** A workspace with a branch and a commit. */
export type BranchWorkspace = Workspace & { branch: string; head: string };

export function onBranch(workspace: Workspace): BranchWorkspace {
  const { branch, head, session } = workspace;
  if (branch !== null && head !== null) return { ...workspace, branch, head };
  const why = branch === null ? 'no branch is checked out in it' : 'its branch has no commit yet';
  throw fail('NO_WORKSPACE', `The workspace of "${session.name}" has no branch: ${why}.`);
}

/** As git names it in the reflog. */
const rebased = 'rebase (finish)';

/** Replays the branch on its base. The workspace changes only when all of it fits. */
export async function rebase(
  workspace: BranchWorkspace,
  requested: string | undefined,
): Promise<DaemonSchema<'SessionRebase'>> {
  const { git, session, branch, head } = workspace;
  const base = await baseOf(workspace, requested);
  if (!base) throw noBase(branch);
  await refuseDirtyWorkspace(git, session);
  const what = `Rebasing ${branch} onto ${base.name ?? base.commit}`;
  const isCurrent = (await git.run(['merge-base', '--is-ancestor', base.commit, head])).code === 0;
  const { tip, count } = isCurrent
    ? { tip: head, count: 0 }
    : await replay(git, { onto: base.commit, head }, what);
  if (tip !== head) await moveBranch(git, { from: head, to: tip, why: rebased });
  return {
    session_id: session.id,
    branch,
    base: base.name,
    before: head,
    commit: tip,
    commit_count: count,
  };
}

export interface MergeParams {
  strategy: DaemonSchema<'MergeStrategy'>;
  message?: string | undefined;
  base?: string | undefined;
}

/** Merges the branch into its base, and into the checkout of the base if there is one. */
export async function merge(
  workspace: BranchWorkspace,
  params: MergeParams,
): Promise<DaemonSchema<'SessionMerge'>> {
  const { git, session, branch } = workspace;
  const { strategy } = params;
  const { name, commit: before } = await mergeTarget(workspace, params.base);
  await refuseDirtyWorkspace(git, session);
  const ahead = await git.text(['rev-list', '--count', `${before}..${workspace.head}`]);
  if (name === branch || ahead === '0') {
    throw fail('NO_CHANGES', `${branch} has no commit that ${name} does not have.`);
  }
  const checkout = await checkoutOf(git, name);
  if (checkout)
    await refuseDirty(checkout, `The checkout of ${name} in ${checkout.cwd}`, { countsNew: false });
  const commit = await mergeCommit(workspace, { ...params, name, onto: before });
  const why = `merge ${branch}: Fast-forward`;
  if (checkout) await moveBranch(checkout, { from: before, to: commit, why });
  else await git.text(['update-ref', '-m', 'merge', `refs/heads/${name}`, commit, before]);
  // The merge is done: a workspace that was changed meanwhile keeps its old commits.
  if (strategy === 'rebase') await tryMove(git, { from: workspace.head, to: commit, why: rebased });
  return { session_id: session.id, strategy, branch, base: name, before, commit };
}

async function mergeTarget(workspace: BranchWorkspace, requested: string | undefined) {
  const base = await baseOf(workspace, requested);
  if (!base?.name) throw noBase(workspace.branch);
  const { name, commit } = base;
  if (!base.isLocal) {
    const how = 'Push the branch and open a pull request, or name a local branch as `base`';
    throw fail('GIT_FAILED', `${name} is not a branch of this clone. ${how}.`);
  }
  return { name, commit };
}

async function mergeCommit(
  { git, session, branch, head }: BranchWorkspace,
  { strategy, message, name, onto }: MergeParams & { name: string; onto: string },
): Promise<string> {
  const what = `Merging ${branch} into ${name}`;
  if (strategy === 'rebase') {
    const { tip } = await replay(git, { onto, head }, what);
    if (tip !== onto) return tip;
    throw fail('NO_CHANGES', `${name} already has the changes of ${branch}.`);
  }
  const tree = await mergedTree(git, onto, head, what);
  if (strategy === 'merge') {
    const text = message ?? `Merge branch '${branch}'`;
    return createCommit(git, { tree, parents: [onto, head], message: text });
  }
  const subjects = await git.text(['log', '--reverse', '--format=* %s', `${onto}..${head}`]);
  const text = message ?? `${session.name}\n\n${subjects}`;
  return createCommit(git, { tree, parents: [onto], message: text });
}

function noBase(branch: string): Error {
  return fail(
    'GIT_FAILED',
    `${branch} has no base branch: there is no origin/HEAD, no main and no master. Name one as ` +
      '`base`.',
  );
}

function refuseDirtyWorkspace(git: Git, { id, name }: Workspace['session']): Promise<void> {
  const next = `Commit them with \`ctl agent commit ${id}\`, or remove them first`;
  return refuseDirty(git, `The workspace of "${name}"`, { next });
}

/**
 * Refuses uncommitted changes. New files count only where the session works: git leaves those of
 * another checkout alone, and refuses to overwrite them.
 */
async function refuseDirty(
  git: Git,
  what: string,
  { countsNew = true, next = 'Commit or remove them first' } = {},
): Promise<void> {
  // Its exit code reports changes, which are listed below.
  await git.run(['update-index', '-q', '--really-refresh']);
  const head = await git.text(['rev-parse', 'HEAD']);
  const plain = ['--name-only', '--ignore-submodules=all'];
  const changed = await git.text(['diff-index', ...plain, head, '--']);
  const others = ['ls-files', '--others', '--exclude-standard'];
  const untracked = countsNew ? await git.text(others) : '';
  const files = `${changed}\n${untracked}`.split('\n').filter((line) => line !== '');
  if (files.length === 0) return;
  const first = unquotePath(files[0]!);
  const more = files.length === 1 ? '' : ` and ${files.length - 1} more`;
  throw fail('WORKSPACE_DIRTY', `${what} has uncommitted changes: ${first}${more}. ${next}.`);
}

/** The working tree where a branch is checked out; undefined when there is none. */
async function checkoutOf(git: Git, branch: string): Promise<Git | undefined> {
  const listed = await git.text(['worktree', 'list', '--porcelain', '-z']);
  for (const entry of listed.split('\0\0')) {
    const lines = entry.split('\0').filter((line) => line !== '');
    const path = lines.find((line) => line.startsWith('worktree '))?.slice('worktree '.length);
    const isGone = lines.some((line) => line.startsWith('prunable'));
    const isBare = lines.includes('bare');
    const holds = lines.includes(`branch refs/heads/${branch}`);
    if (path !== undefined && holds && !isGone && !isBare) return git.in(path);
  }
  return undefined;
}

/**
 * Moves the checked-out branch and its files. Answers why it was not moved: files with changes would
 * be lost, or the branch has moved meanwhile.
 */
async function tryMove(git: Git, move: Move): Promise<string | undefined> {
  const { from, to, why } = move;
  const files = await git.run(['read-tree', '-m', '-u', from, to]);
  if (files.code !== 0) return files.said;
  const ref = await git.run(['update-ref', '-m', why, 'HEAD', to, from]);
  if (ref.code === 0) return undefined;
  await git.run(['read-tree', '-m', '-u', to, from]);
  return ref.said;
}

interface Move {
  from: string;
  to: string;
  /** For the reflog. */
  why: string;
}

async function moveBranch(git: Git, move: Move): Promise<void> {
  const trouble = await tryMove(git, move);
  if (trouble === undefined) return;
  throw fail('GIT_FAILED', `The branch in ${git.cwd} cannot be moved: ${trouble}`);
}
