import { existsSync } from 'node:fs';
import { access, constants, mkdir, readdir, realpath, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path';
import type { WorktreeOrigin } from '../core/session.js';
import { invalid } from '../core/api.js';
import { git, type GitEnd, type GitParts } from '../git/run-git.js';
import type { SpawnRequest } from './port.js';

/** The git repository of a session's directory. */
export interface RepoFacts {
  /** The top of the working tree that the directory is in. */
  top: string;
  /** The repository's main working tree, which all its worktrees belong to. */
  root: string;
  /** Null when no branch is checked out. */
  branch: string | null;
  hasCommits: boolean;
}

/** Undefined when the directory is in no repository. */
export async function repoFacts(
  parts: GitParts,
  directory: string,
): Promise<RepoFacts | undefined> {
  const shown = await git(
    parts,
    directory,
    'rev-parse',
    '--path-format=absolute',
    '--show-toplevel',
    '--git-common-dir',
  );
  if (!shown.isOk) return undefined;
  const [top = directory, common = ''] = shown.stdout.split('\n');
  const branch = await git(parts, directory, 'symbolic-ref', '--quiet', '--short', 'HEAD');
  const head = await git(parts, directory, 'rev-parse', '--verify', '--quiet', 'HEAD');
  return {
    top,
    root: basename(common) === '.git' ? dirname(common) : top,
    branch: branch.isOk ? branch.stdout : null,
    hasCommits: head.isOk,
  };
}

export interface WantedWorktree {
  repo: RepoFacts;
  /** Undefined: derived from the name. */
  branch: string | undefined;
  /** Name of the worktree when no branch is given. */
  name: string;
  /** What a new branch starts from; undefined: what is checked out in the repository. */
  base?: string | undefined;
  /** Distinguishes worktrees with the same name. */
  suffix: string;
  /** Where worktrees go when the directory beside the repository is not writable. */
  fallback: string;
  /** Whether a session has this worktree. */
  isUsed: (path: string) => boolean;
}

export interface Worktree {
  path: string;
  mark: WorktreeOrigin;
}

/** Makes a worktree in `<repository>-worktrees/`, with its branch where that is not there yet. */
export async function addWorktree(
  parts: GitParts,
  { repo, branch: requested, base: wanted, name, suffix, fallback, isUsed }: WantedWorktree,
): Promise<Worktree | { refusal: string; field: 'repo' | 'branch' | 'base' }> {
  if (!repo.hasCommits) {
    return {
      refusal: 'has no commit yet, so no worktree can be made of it: commit something first',
      field: 'repo',
    };
  }
  const { root } = repo;
  const branch = requested ?? (await freeBranch(parts, root, slugOf(name), suffix));
  const valid = await git(parts, root, 'check-ref-format', '--branch', branch);
  if (!valid.isOk) return { refusal: 'is no name that git takes for a branch', field: 'branch' };
  const base = await git(parts, repo.top, 'rev-parse', '--verify', `${wanted ?? 'HEAD'}^{commit}`);
  if (!base.isOk) {
    return { refusal: `names "${wanted}", which is no branch or commit of it`, field: 'base' };
  }
  const home = await homeFor(root, fallback);
  await removeLeftover(parts, { root, branch, path: join(home, slugOf(branch)), isUsed });
  const path = freePlace(home, slugOf(branch), suffix);
  const kind = await kindOfBranch(parts, root, branch);
  const args =
    kind === 'local'
      ? [path, branch]
      : kind === 'remote'
        ? ['--track', '-b', branch, path, `origin/${branch}`]
        : ['-b', branch, path, base.stdout];
  const added = await addCheckout(parts, { root, path, args });
  if (!added.isOk) {
    await removeIfEmpty(dirname(path));
    return {
      refusal: `cannot be checked out: ${added.trouble}; name another branch`,
      field: 'branch',
    };
  }
  const began = await git(parts, path, 'rev-parse', 'HEAD');
  return {
    path: await realpath(path),
    mark: {
      root,
      branch,
      base: kind === 'new' ? base.stdout : began.stdout,
      baseBranch: wanted ?? repo.branch,
      madeBranch: kind === 'new',
    },
  };
}

/** A daemon that is killed leaves a worktree that no session knows, and nobody has worked in. */
async function removeLeftover(
  parts: GitParts,
  {
    root,
    branch,
    path,
    isUsed,
  }: { root: string; branch: string; path: string; isUsed: (path: string) => boolean },
): Promise<void> {
  if (!existsSync(path) || isUsed(await realpath(path))) return;
  const facts = await repoFacts(parts, path);
  if (facts?.root !== root || facts.top === root || facts.branch !== branch) return;
  if (await isUntouched(parts, path)) {
    // Twice, because git locks a worktree while it makes it.
    await git(parts, root, 'worktree', 'remove', '--force', '--force', path);
  }
}

/** Is nothing in it that is not in its branch, not even an ignored file? */
async function isUntouched(parts: GitParts, path: string): Promise<boolean> {
  const index = await git(
    parts,
    path,
    'rev-parse',
    '--path-format=absolute',
    '--git-path',
    'index',
  );
  if (!index.isOk) return false;
  // Git writes the index when it has checked out the files. Without one, files may be a person's.
  if (!existsSync(index.stdout)) return (await readdir(path)).every((name) => name === '.git');
  const head = await git(parts, path, 'rev-parse', 'HEAD');
  const changes = await uncommittedChanges(parts, path, head.stdout);
  const others = await git(parts, path, 'ls-files', '--others', '--directory');
  return changes.isOk && changes.stdout === '' && others.isOk && others.stdout === '';
}

/** Git checks out files in a separate step, without hooks and filters unless they are allowed. */
async function addCheckout(
  parts: GitParts,
  { root, path, args }: { root: string; path: string; args: readonly string[] },
): Promise<GitEnd> {
  const plain = ['worktree', 'add', '--quiet', ...(parts.runsHooks ? [] : ['--no-checkout'])];
  const added = await git(parts, root, ...plain, ...args);
  if (!added.isOk || parts.runsHooks) return added;
  const head = await git(parts, path, 'rev-parse', 'HEAD');
  const files = head.isOk ? await git(parts, path, 'read-tree', '-m', '-u', head.stdout) : head;
  if (!files.isOk) await git(parts, root, 'worktree', 'remove', '--force', path);
  return files;
}

async function kindOfBranch(
  parts: GitParts,
  root: string,
  branch: string,
): Promise<'local' | 'remote' | 'new'> {
  if ((await git(parts, root, 'show-ref', '--verify', '--quiet', `refs/heads/${branch}`)).isOk) {
    return 'local';
  }
  const remote = `refs/remotes/origin/${branch}`;
  return (await git(parts, root, 'show-ref', '--verify', '--quiet', remote)).isOk
    ? 'remote'
    : 'new';
}

async function freeBranch(
  parts: GitParts,
  root: string,
  slug: string,
  suffix: string,
): Promise<string> {
  return (await kindOfBranch(parts, root, slug)) === 'new' ? slug : `${slug}-${suffix}`;
}

/** Letters, digits and a few signs, so that it is a good name for a branch and for a directory. */
export function slugOf(text: string): string {
  const slug = text
    .normalize('NFKD')
    .replaceAll(/[^\w.-]+/g, '-')
    .replaceAll(/\.{2,}/g, '.')
    .replaceAll(/^[-.]+|[-.]+$/g, '')
    .slice(0, 60)
    .replaceAll(/[-.]+$/g, '');
  return slug === '' || slug.endsWith('.lock') ? 'agent' : slug;
}

async function homeFor(root: string, fallback: string): Promise<string> {
  const beside = `${root}-worktrees`;
  try {
    await mkdir(beside, { recursive: true });
    await access(beside, constants.W_OK);
    return beside;
  } catch {
    // Not writable; the data directory always is.
    const home = join(fallback, basename(root));
    await mkdir(home, { recursive: true, mode: 0o700 });
    return home;
  }
}

function freePlace(home: string, name: string, suffix: string): string {
  const place = join(home, name);
  return existsSync(place) ? join(home, `${name}-${suffix}`) : place;
}

/**
 * Removes a worktree, unless work would be lost, or `beforeRemoval` says why not: then returns why
 * it is kept. The branch is removed
 * too if it was created for the worktree and has no commits of its own.
 */
export async function removeWorktree(
  parts: GitParts,
  path: string,
  mark: WorktreeOrigin,
  beforeRemoval?: () => Promise<string | undefined>,
): Promise<{ isRetained: false } | { isRetained: true; reason: string }> {
  const retained = (reason: string) => ({ isRetained: true as const, reason });
  if (!existsSync(path)) {
    await git(parts, mark.root, 'worktree', 'prune');
    return { isRetained: false };
  }
  const head = await git(parts, path, 'rev-parse', 'HEAD');
  if (!head.isOk) return retained(`git cannot tell its commit: ${head.trouble}`);
  const changes = await uncommittedChanges(parts, path, head.stdout);
  if (!changes.isOk) return retained(`git cannot tell its state: ${changes.trouble}`);
  if (changes.stdout !== '') return retained('the worktree has uncommitted changes');
  const staged = await git(parts, path, 'ls-files', '--stage');
  if (!staged.isOk) return retained(`git cannot tell its files: ${staged.trouble}`);
  if (/^160000 /m.test(staged.stdout)) return retained('the worktree has nested repositories');
  if (!(await isMerged(parts, path, head.stdout, mark))) {
    return retained(`the branch ${mark.branch} is not merged`);
  }
  const trouble = await beforeRemoval?.();
  if (trouble !== undefined) return retained(trouble);
  // Forced, because git would look for changes once more, with filters and in nested repositories.
  const removed = await git(parts, mark.root, 'worktree', 'remove', '--force', path);
  if (!removed.isOk) return retained(`git does not remove it: ${removed.trouble}`);
  if (mark.madeBranch && head.stdout === mark.base) {
    await git(parts, mark.root, 'branch', '--delete', '--force', mark.branch);
  }
  await removeIfEmpty(dirname(path));
  return { isRetained: false };
}

/** Changed and new files, by plumbing: `status` obeys far more of a repository's config. */
async function uncommittedChanges(parts: GitParts, path: string, head: string): Promise<GitEnd> {
  // Its exit code reports changes, which are listed below.
  await git(parts, path, 'update-index', '-q', '--really-refresh');
  const plain = ['--name-only', '--ignore-submodules=all'];
  const changed = await git(parts, path, 'diff-index', ...plain, head, '--');
  if (!changed.isOk || changed.stdout !== '') return changed;
  const fresh = ['--others', '--exclude-standard', '--directory', '--no-empty-directory'];
  return git(parts, path, 'ls-files', ...fresh);
}

/** Removes the parent directory with its last worktree. */
async function removeIfEmpty(directory: string): Promise<void> {
  // It has others, or may not be removed: then it stays.
  await rmdir(directory).catch(() => undefined);
}

/** Is every commit of it found elsewhere, where it is meant to go? */
async function isMerged(
  parts: GitParts,
  path: string,
  head: string,
  { base, baseBranch, branch }: WorktreeOrigin,
): Promise<boolean> {
  if (head === base) return true;
  const targets = ['refs/remotes/origin/HEAD', `refs/remotes/origin/${branch}`];
  if (baseBranch !== null && baseBranch !== branch) targets.push(`refs/heads/${baseBranch}`);
  for (const target of targets) {
    if ((await git(parts, path, 'merge-base', '--is-ancestor', head, target)).isOk) return true;
  }
  return false;
}

/** Where a session is to work. */
export interface WorktreeTarget {
  repo: RepoFacts | undefined;
  cwd: string | undefined;
  wantsWorktree: boolean;
}

/** Checks the places that a request names. */
export async function worktreeTargetFor(
  parts: GitParts,
  request: SpawnRequest,
): Promise<WorktreeTarget> {
  const { repo, cwd, branch } = request;
  if (repo !== undefined) await checkDirectory('repo', repo);
  if (cwd !== undefined) await checkDirectory('cwd', cwd);
  const directory = repo ?? cwd ?? process.cwd();
  const facts = await repoFacts(parts, directory);
  const wantsWorktree = request.worktree ?? branch !== undefined;
  if (!facts && (repo !== undefined || wantsWorktree)) await checkGit(parts);
  if (repo !== undefined && !facts) {
    const other = 'name a directory without one in `cwd` (`--cwd`)';
    throw invalid('repo', `names ${repo}, which is not a git repository; ${other}`);
  }
  if (wantsWorktree && !facts) {
    const field = branch === undefined ? 'worktree' : 'branch';
    throw invalid(field, 'needs a git repository: name one in `repo` (`--repo`)');
  }
  if (request.worktree === false) await checkBranch(parts, cwd ?? directory, branch);
  return { repo: facts, cwd, wantsWorktree };
}

/** Without a worktree the agent works on the checked-out branch. */
async function checkBranch(parts: GitParts, cwd: string, branch: string | undefined) {
  if (branch === undefined) return;
  const checkedOut = (await repoFacts(parts, cwd))?.branch;
  if (checkedOut === branch) return;
  const found =
    checkedOut === undefined
      ? 'which is not a git repository'
      : `where ${checkedOut ?? 'no branch'} is checked out`;
  const next = 'leave out `worktree: false` to work on it in a worktree';
  throw invalid('branch', `must be checked out in ${cwd}, ${found}; ${next}`);
}

/** Without git nothing can be said about a repository. */
async function checkGit(parts: GitParts): Promise<void> {
  const { isOk, trouble } = await git(parts, '/', '--version');
  if (!isOk) throw invalid('repo', `cannot be read, because git failed: ${trouble}`);
}

async function checkDirectory(field: 'repo' | 'cwd', path: string): Promise<void> {
  if (path.includes('\0')) throw invalid(field, 'contains a NUL character; remove it');
  if (!isAbsolute(path)) throw invalid(field, 'must be an absolute path');
  const facts = await stat(path).catch(() => undefined);
  if (!facts)
    throw invalid(field, `names ${path}, which does not exist: create it or name another`);
  if (!facts.isDirectory()) throw invalid(field, `names ${path}, which is not a directory`);
}

interface WorktreePlace extends Pick<WantedWorktree, 'isUsed'> {
  git: GitParts;
  dataDir: string;
  id: string;
}

/** The worktree that a request asks for. */
export async function worktreeFor(
  { git, dataDir, id, isUsed }: WorktreePlace,
  { repo }: WorktreeTarget,
  request: SpawnRequest,
  name: string,
) {
  const made = await addWorktree(git, {
    repo: repo!,
    branch: request.branch,
    base: request.base,
    name,
    suffix: id.slice(-6).toLowerCase(),
    fallback: join(dataDir, 'worktrees'),
    isUsed,
  });
  if ('refusal' in made) {
    const isRequested = made.field !== 'branch' || request.branch !== undefined;
    throw invalid(isRequested ? made.field : 'worktree', made.refusal);
  }
  return made;
}

/** Where to work in a worktree: at the place of `cwd` in it, if `cwd` is in the repository. */
export async function workdirIn(
  worktree: string,
  { repo, cwd }: Pick<WorktreeTarget, 'repo' | 'cwd'>,
): Promise<string> {
  if (cwd === undefined) return worktree;
  const path = relative(repo!.top, await realpath(cwd).catch(() => cwd));
  if (path === '..' || path.startsWith('../')) return cwd;
  const inside = join(worktree, path);
  // A directory without files of the branch is not in it.
  const isThere = (await stat(inside).catch(() => undefined))?.isDirectory();
  return isThere ? inside : worktree;
}

/** Why a path is no repository to work in; undefined when it is one. */
export async function repoProblem(repo: string): Promise<string | undefined> {
  if (repo.includes('\0')) return 'must not contain NUL';
  if (!isAbsolute(repo)) return 'must be an absolute path';
  const found = await stat(repo).catch(() => undefined);
  if (!found) return 'does not exist';
  if (!found.isDirectory()) return 'is not a directory';
  for (let here = resolve(repo); ; here = dirname(here)) {
    if (existsSync(join(here, '.git'))) return undefined;
    if (here === dirname(here)) return 'is not in a git repository';
  }
}
