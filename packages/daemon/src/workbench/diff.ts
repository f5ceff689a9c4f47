import { copyFile, mkdtemp, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { whenThere } from '@millrace/kit/errors';
import type { Git } from './git.js';
import { parseDiff } from './parse-diff.js';
import { baseOf, type Workspace } from './workspace.js';

const limits = { maxLines: 5_000, maxFiles: 2_000, maxLineLength: 10_000 };

const diffOptions = [
  '--raw',
  '--numstat',
  '--patch',
  '--unified=3',
  '--abbrev=40',
  '--find-renames',
  '--no-color',
  '--no-relative',
  '--submodule=short',
];

/**
 * Everything that the session changed since its branch left the base: commits, uncommitted changes
 * and new files. Writes nothing into the repository.
 */
export async function diffOf(
  workspace: Workspace,
  requested: string | undefined,
): Promise<DaemonSchema<'SessionDiff'>> {
  const { git, session, branch, head } = workspace;
  const base = await baseOf(workspace, requested);
  const from = await startOf(git, head, base?.commit);
  const { stdout, isCut } = await withNewFiles(git, (variables) =>
    git.done(['diff', ...diffOptions, from.tree, '--'], { keeps: 'start', variables }),
  );
  const { files, ...counts } = parseDiff(stdout, isCut, limits);
  return {
    session_id: session.id,
    branch,
    head,
    base: base?.name ?? null,
    base_commit: from.commit,
    file_count: files.length,
    ...counts,
    files,
  };
}

/** The commit where the branch left the base; the empty tree when there is no commit. */
async function startOf(
  git: Git,
  head: string | null,
  base: string | undefined,
): Promise<{ tree: string; commit: string | null }> {
  if (head === null) {
    const empty = await git.text(['hash-object', '-t', 'tree', '--stdin']);
    return { tree: empty, commit: null };
  }
  if (base === undefined) return { tree: head, commit: head };
  const fork = (await git.maybe(['merge-base', base, head])) ?? base;
  return { tree: fork, commit: fork };
}

/**
 * The copy keeps the time of the index: git compares the content of files that are not older than
 * their index, and would miss a change of the same size and second beside a newer one.
 */
async function copyIndex(index: string, copy: string): Promise<void> {
  const { mtimeMs } = await stat(index);
  await copyFile(index, copy);
  const seconds = Math.floor(mtimeMs / 1_000);
  await utimes(copy, seconds, seconds);
}

/** Runs with a copy of the index that also lists untracked files; the index itself stays. */
async function withNewFiles<Result>(
  git: Git,
  run: (variables: Readonly<Record<string, string>>) => Promise<Result>,
): Promise<Result> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-index-'));
  try {
    const copy = join(directory, 'index');
    const index = await git.text(['rev-parse', '--path-format=absolute', '--git-path', 'index']);
    // A repository without commits may have no index yet.
    await whenThere(copyIndex(index, copy));
    const variables = { GIT_INDEX_FILE: copy };
    await listNewFiles(git, variables);
    return await run(variables);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/**
 * New files are listed as empty ones, so that their whole content is a change. By plumbing, because
 * `git add` runs git inside nested repositories, with their own config.
 */
async function listNewFiles(git: Git, variables: Readonly<Record<string, string>>): Promise<void> {
  const { files, repositories } = await newFiles(git, variables);
  const empty = await git.text(['hash-object', '--stdin']);
  const entries = files.map((file) => `100644 ${empty} 0\t${file}\n`).join('');
  await git.done(['update-index', '--index-info'], { variables, input: entries });
  await addRepositories(git, repositories, variables);
}

type Variables = Readonly<Record<string, string>>;

/** More names than this are an error, not a part of them. */
const maxBytes = 64 * 1_048_576;

/**
 * Untracked files that are not ignored, and untracked nested repositories. Names are quoted as git
 * quotes them, and can be given back to it as they are.
 */
export async function newFiles(git: Git, variables: Variables = {}) {
  const names = await listFiles(git, ['--others', '--exclude-standard'], variables);
  const isDirectory = (name: string) => /\/"?$/.test(name);
  return {
    files: names.filter((name) => !isDirectory(name)),
    repositories: names.filter(isDirectory).map((name) => name.replace(/\/("?)$/, '$1')),
  };
}

/** Tracked files that were changed or deleted. */
export function changedFiles(git: Git): Promise<string[]> {
  return listFiles(git, ['--modified', '--deduplicate']);
}

async function listFiles(git: Git, options: string[], variables: Variables = {}) {
  const listed = await git.text(['ls-files', ...options], { variables, maxBytes });
  return listed.split('\n').filter((name) => name !== '');
}

/** Adds nested repositories by their commit; one without a commit is left out, as it has none. */
export async function addRepositories(
  git: Git,
  repositories: readonly string[],
  variables: Variables = {},
): Promise<void> {
  for (const name of repositories) {
    const args = ['update-index', '--add', '--replace', '--stdin'];
    await git.run(args, { variables, input: `${name}\n` });
  }
}
