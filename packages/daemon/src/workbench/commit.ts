import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { whenThere } from '@millrace/kit/errors';
import { fail } from '../core/api.js';
import type { Git } from './git.js';
import { authorOf, conflict, createCommit, identityOf } from './merging.js';
import { addRepositories, changedFiles, newFiles } from './diff.js';
import { unquotePath } from './parse-diff.js';
import type { Workspace } from './workspace.js';

/** Commits every change of the workspace, new files included. */
export async function commitAll(
  workspace: Workspace,
  {
    message = workspace.session.name,
    runsHooks,
  }: { message?: string | undefined; runsHooks: boolean },
): Promise<DaemonSchema<'SessionCommit'>> {
  const { git, session, branch, head } = workspace;
  const unmerged = await git.text(['ls-files', '--unmerged']);
  if (unmerged !== '') {
    const names = unmerged.split('\n').map((line) => unquotePath(line.split('\t')[1] ?? ''));
    throw conflict('The workspace', [...new Set(names)]);
  }
  const made = runsHooks
    ? await commitWithHooks(git, message)
    : await commitPlainly(git, head, message);
  if (!made) throw fail('NO_CHANGES', `The workspace of "${session.name}" has nothing to commit.`);
  const commit = await git.text(['rev-parse', 'HEAD']);
  const only = ['--no-commit-id', '--name-only', '-r', '--root'];
  const files = await git.text(['diff-tree', ...only, commit]);
  const file_count = files.split('\n').length;
  return { session_id: session.id, branch, commit, message, file_count };
}

/** As git does it, for repositories that may run their hooks and filters. */
async function commitWithHooks(git: Git, message: string): Promise<boolean> {
  await git.text(['add', '--all', '--', '.']);
  const staged = await git.run(['diff', '--cached', '--quiet']);
  if (staged.code === 0) return false;
  await git.text(['commit', '--quiet', '--file=-'], {
    input: `${message.trimEnd()}\n`,
    variables: await identityOf(git),
  });
  return true;
}

/** By plumbing: `git add` and `git commit` run filters, also inside nested repositories. */
async function commitPlainly(git: Git, head: string | null, text: string): Promise<boolean> {
  const { files, repositories } = await newFiles(git);
  const input = [...(await changedFiles(git)), ...files].map((name) => `${name}\n`).join('');
  await git.done(['update-index', '--add', '--remove', '--replace', '--stdin'], { input });
  await addRepositories(git, repositories);
  const tree = await git.text(['write-tree']);
  const { merged, picked } = await unfinished(git);
  const before =
    head === null
      ? await git.text(['hash-object', '-t', 'tree', '--stdin'])
      : await git.text(['rev-parse', `${head}^{tree}`]);
  if (tree === before && merged.length === 0) return false;
  const message = await git.text(['stripspace'], { input: `${text}\n` });
  const parents = [...(head === null ? [] : [head]), ...merged];
  const variables = picked === undefined ? {} : await authorOf(git, picked);
  const commit = await createCommit(git, { tree, parents, message, variables });
  const how = head === null ? 'commit (initial)' : merged.length > 0 ? 'commit (merge)' : 'commit';
  const why = `${how}: ${message.split('\n', 1)[0] ?? ''}`;
  await git.done(['update-ref', '-m', why, 'HEAD', commit, head ?? '0'.repeat(commit.length)]);
  await clearUnfinished(git);
  return true;
}

/** A merge or cherry-pick that the agent has begun; the commit finishes it. */
async function unfinished(git: Git) {
  const picked = await git.commitOf('CHERRY_PICK_HEAD');
  const text = await whenThere(readFile(join(await gitDirectory(git), 'MERGE_HEAD'), 'utf8'));
  const merged = (text ?? '').split('\n').filter((line) => /^[0-9a-f]{40,64}$/.test(line));
  return { merged, picked };
}

const stateFiles = ['MERGE_HEAD', 'MERGE_MSG', 'MERGE_MODE', 'AUTO_MERGE', 'SQUASH_MSG'];

async function clearUnfinished(git: Git): Promise<void> {
  const directory = await gitDirectory(git);
  for (const name of [...stateFiles, 'CHERRY_PICK_HEAD', 'REVERT_HEAD']) {
    await rm(join(directory, name), { force: true });
  }
}

function gitDirectory(git: Git): Promise<string> {
  return git.text(['rev-parse', '--path-format=absolute', '--git-dir']);
}
