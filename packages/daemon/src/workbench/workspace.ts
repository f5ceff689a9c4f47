import { stat } from 'node:fs/promises';
import { fail } from '../core/api.js';
import type { Session } from '../sessions/port.js';
import type { GitParts } from '../git/run-git.js';
import { Git } from './git.js';

/** The git checkout of a session. */
export interface Workspace {
  session: Session;
  /** Runs at the top of the checkout. */
  git: Git;
  /** Null when no branch is checked out. */
  branch: string | null;
  /** Null when there is no commit yet. */
  head: string | null;
}

/** The checkout of a session; refuses with NO_WORKSPACE when it works in no git repository. */
export async function openWorkspace(parts: GitParts, session: Session): Promise<Workspace> {
  const directory = session.worktree ?? session.workdir;
  const isThere = await stat(directory).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
  if (!isThere) {
    throw noWorkspace(session, `its directory ${directory} no longer exists`);
  }
  const inside = new Git(parts, directory);
  const top = await inside.maybe(['rev-parse', '--show-toplevel']);
  // Without a name git would run in the directory of the daemon.
  if (!top) {
    const next = 'start agents with `--repo` to have one';
    throw noWorkspace(session, `${directory} is not in a git repository; ${next}`);
  }
  const git = inside.in(top);
  const branch = await git.maybe(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  return { session, git, branch: branch ?? null, head: (await git.commitOf('HEAD')) ?? null };
}

function noWorkspace({ name }: Session, why: string): Error {
  return fail('NO_WORKSPACE', `The session "${name}" has no git workspace: ${why}.`);
}

export interface Base {
  /** As it was named, such as `main`; null: the commit that the worktree began at. */
  name: string | null;
  commit: string;
  /** True when the name is a branch of this repository. */
  isLocal: boolean;
}

/**
 * What a branch is compared with and merged into: the requested name, the branch that the worktree
 * was made from, or the default branch of the repository. Undefined when there is none of them.
 */
export async function baseOf(
  { git, session }: Workspace,
  requested?: string,
): Promise<Base | undefined> {
  if (requested !== undefined) {
    const base = await namedBase(git, requested);
    if (base) return base;
    const message = `names "${requested}", which is no branch or commit of the repository`;
    const errors = [{ pointer: '/base', message }];
    throw fail('INVALID_REQUEST', `\`base\` ${message}.`, { errors });
  }
  const names = [session.base_branch ?? undefined, await originDefault(git), 'main', 'master'];
  for (const name of names) {
    const base = name === undefined ? undefined : await namedBase(git, name);
    if (base) return base;
  }
  const { base_commit: start } = session;
  const commit = start ? await git.commitOf(start) : undefined;
  return commit === undefined ? undefined : { name: null, commit, isLocal: false };
}

/** A local branch first, then a branch of origin, then anything else that names a commit. */
async function namedBase(git: Git, name: string): Promise<Base | undefined> {
  const local = await git.commitOf(`refs/heads/${name}`);
  if (local !== undefined) return { name, commit: local, isLocal: true };
  const commit = (await git.commitOf(`refs/remotes/origin/${name}`)) ?? (await git.commitOf(name));
  return commit === undefined ? undefined : { name, commit, isLocal: false };
}

async function originDefault(git: Git): Promise<string | undefined> {
  const target = await git.maybe(['symbolic-ref', '--quiet', 'refs/remotes/origin/HEAD']);
  return target?.replace('refs/remotes/origin/', '');
}
