import { complaint, type Call } from './programs.js';

/** A branch and its base, resolved to commits. Unknown values are null. */
export interface Refs {
  branch: string | null;
  /** The commit at its tip. */
  head: string | null;
  base: { name: string; commit: string } | null;
  error: string | null;
}

const nothing: Refs = { branch: null, head: null, base: null, error: null };

export interface Place {
  cwd: string;
  /** The branch given at spawn. */
  recordedBranch: string | null;
  /** Other sessions use this directory, so its checkout is not the session's own. */
  isShared: boolean;
}

/** Resolves the checked-out or given branch, and its base. */
export async function readRefs(
  call: Call,
  { cwd, recordedBranch, isShared }: Place,
): Promise<Refs> {
  let branch = recordedBranch;
  if (recordedBranch === null || !isShared) {
    const head = await call('git', ['symbolic-ref', '--quiet', '--short', 'HEAD'], cwd);
    // Code 1: no branch is checked out.
    if (head.kind === 'failed' || (head.code !== 0 && head.code !== 1)) {
      return { ...nothing, branch, error: complaint('git', head) };
    }
    branch = (head.code === 0 && head.stdout.trim()) || recordedBranch;
  }
  const names = [...(branch === null ? [] : [`refs/heads/${branch}`]), ...baseNames];
  const format = '--format=%(refname)%00%(objectname)%00%(symref)';
  const listed = await call('git', ['for-each-ref', format, ...names], cwd);
  if (listed.kind === 'failed' || listed.code !== 0) {
    return { ...nothing, branch, error: complaint('git', listed) };
  }
  const refs = new Map(listed.stdout.split('\n').map((line) => parseRef(line)));
  const tip = branch === null ? undefined : refs.get(`refs/heads/${branch}`);
  const base = baseIn(refs);
  return { branch, head: tip?.commit ?? null, base, error: errorOf(branch, tip, base) };
}

interface Ref {
  commit: string;
  /** Target of a symbolic ref. */
  target: string;
}

export const originHead = 'refs/remotes/origin/HEAD';
export const defaultNames = ['main', 'master'] as const;
const baseNames = [
  originHead,
  ...defaultNames.flatMap((name) => [`refs/remotes/origin/${name}`, `refs/heads/${name}`]),
];

function parseRef(line: string): [name: string, ref: Ref] {
  const [name = '', commit = '', target = ''] = line.split('\0');
  return [name, { commit, target }];
}

/** The default branch of origin; else main or master, those of origin first. */
function baseIn(refs: ReadonlyMap<string, Ref>): Refs['base'] {
  const remoteHead = refs.get(originHead);
  if (remoteHead?.target) return { name: shortName(remoteHead.target), commit: remoteHead.commit };
  for (const name of baseNames) {
    const ref = refs.get(name);
    if (ref && name !== originHead) return { name: shortName(name), commit: ref.commit };
  }
  return null;
}

function shortName(ref: string): string {
  return ref.replace(/^refs\/(?:remotes\/origin|heads)\//, '');
}

function errorOf(branch: string | null, tip: Ref | undefined, base: Refs['base']): string | null {
  if (branch === null) return 'no branch is checked out';
  if (!tip) return `the branch ${branch} has no commit`;
  if (!base) return 'no base branch: there is no origin/HEAD, no main and no master';
  return null;
}
