import type { Session } from '../sessions/port.js';
import type { ComparisonCache } from './inspection.js';
import type { Call } from './programs.js';
import { defaultNames, originHead } from './comparison.js';

/** The fields of a session that a comparison needs. */
export type MergeCandidate = Pick<Session, 'id' | 'repo' | 'branch' | 'base_branch'>;

/** A branch and its local base. */
export interface LocalMerge {
  id: string;
  /** The tip of the branch. */
  head: string;
  isMerged: boolean;
}

/**
 * Whether the branches are merged into their local base, for example by `git merge` in a terminal.
 * One git process per repository lists the tips; only tips that moved are compared. Sessions whose
 * branch or base is not found are left out.
 */
export async function localMerges(
  candidates: readonly MergeCandidate[],
  memory: ComparisonCache,
  call: Call,
): Promise<LocalMerge[]> {
  const repos = new Set(candidates.flatMap(({ repo }) => repo ?? []));
  const found = await Promise.all(
    [...repos].map((path) => {
      const sessions = candidates.filter(({ repo }) => repo === path);
      return mergesIn(path, sessions, memory, call);
    }),
  );
  return found.flat();
}

async function mergesIn(
  cwd: string,
  sessions: readonly MergeCandidate[],
  memory: ComparisonCache,
  call: Call,
): Promise<LocalMerge[]> {
  const tips = await readTips(cwd, call);
  const merges: LocalMerge[] = [];
  for (const { id, branch, base_branch: recorded } of sessions) {
    const head = branch === null ? undefined : tips.commits.get(branch);
    const name = [recorded, tips.defaultBase, ...defaultNames].find(
      (each) => each && tips.commits.has(each),
    );
    if (branch === null || head === undefined || !name) continue;
    const base = { name, commit: tips.commits.get(name)! };
    const comparison = await memory.comparison({ cwd, branch, head, base }, call);
    merges.push({ id, head, isMerged: comparison.merged === true });
  }
  return merges;
}

interface Tips {
  /** Commits by the name of the local branch. */
  commits: ReadonlyMap<string, string>;
  /** The default branch of origin. */
  defaultBase: string | undefined;
}

/** No tips when git fails: the status of the branch has the reason. */
async function readTips(cwd: string, call: Call): Promise<Tips> {
  const format = '--format=%(refname)%00%(objectname)%00%(symref)';
  const end = await call('git', ['for-each-ref', format, 'refs/heads', originHead], cwd);
  if (end.kind === 'failed' || end.code !== 0)
    return { commits: new Map(), defaultBase: undefined };
  const refs = end.stdout.split('\n').map((line) => line.split('\0'));
  const target = refs.find(([name]) => name === originHead)?.[2];
  return {
    commits: new Map(
      refs.map(([name = '', commit = '']) => [name.replace('refs/heads/', ''), commit]),
    ),
    defaultBase: target?.replace('refs/remotes/origin/', ''),
  };
}
