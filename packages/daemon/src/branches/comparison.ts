import { complaint, type Call, type CallEnd } from './programs.js';

/** A branch compared with its base. Unknown values are null. */
export interface Comparison {
  ahead: number | null;
  behind: number | null;
  merged: boolean | null;
  /** The merge base; present only when the comparison needs it. */
  fork: string | null;
  error: string | null;
}

export interface Compared {
  cwd: string;
  branch: string;
  head: string;
  base: { name: string; commit: string };
}

/** git failed: the reason becomes the status's error. */
class Unanswered extends Error {}

/** Counts commits ahead and behind, and detects whether the branch is merged. Read-only. */
export async function compare(call: Call, compared: Compared): Promise<Comparison> {
  const comparison: Comparison = {
    ahead: null,
    behind: null,
    merged: null,
    fork: null,
    error: null,
  };
  const git = new Git(call, compared.cwd);
  const { head, base } = compared;
  try {
    const counts = await git.line(
      'rev-list',
      '--left-right',
      '--count',
      `${base.commit}...${head}`,
    );
    const [behind = NaN, ahead = NaN] = counts.split(/\s+/).map(Number);
    if (!Number.isInteger(ahead) || !Number.isInteger(behind)) {
      throw new Unanswered('git counted no commits');
    }
    Object.assign(comparison, { ahead, behind });
    comparison.fork = await git.maybe('merge-base', base.commit, head);
    // The base branch itself is never reported as merged.
    if (compared.branch === base.name) comparison.merged = false;
    else if (ahead === 0) comparison.merged = await wasMerged(git, compared, behind);
    else comparison.merged = behind > 0 && (await wasSquashed(git, compared, comparison.fork));
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    comparison.error = error.message;
  }
  return comparison;
}

/**
 * The base contains the branch. It counts as merged when the branch had commits of its own:
 * commits made on it here that the base contains, or a tip that the base reaches only by a merge.
 * A new branch, or one that was reset, has none.
 */
async function wasMerged(git: Git, { branch, head, base }: Compared, behind: number) {
  const last = await lastOwnCommit(git, branch);
  if (last !== undefined) {
    const contained = await git.maybe('merge-base', '--is-ancestor', last, base.commit);
    if (contained !== null) return true;
  }
  if (behind === 0) return false;
  const mainline = `${head}..${base.commit}`;
  const steps = await git.line('rev-list', '--first-parent', '--count', mainline);
  const meeting = await git.line('rev-parse', '--verify', `${base.commit}~${steps}`);
  return meeting !== head;
}

const made = /^(?:commit|cherry-pick|revert|am)\b/;
const replayed = /^rebase\b|^pull\b.*\(finish\)/;

/** From the reflog: the newest commit made on the branch, or its rebased version. */
async function lastOwnCommit(git: Git, branch: string): Promise<string | undefined> {
  const log = await git.maybe('reflog', 'show', '--format=%H %gs', `refs/heads/${branch}`, '--');
  const entries = (log ?? '').split('\n').map((line) => {
    const at = line.indexOf(' ');
    return { commit: line.slice(0, at), action: line.slice(at + 1) };
  });
  if (!entries.some(({ action }) => made.test(action))) return undefined;
  return entries.find(({ action }) => made.test(action) || replayed.test(action))?.commit;
}

/** More files than this are not compared. */
const maxFiles = 500;

/** Squash merge: the base has none of the commits, but every changed file has the same content. */
async function wasSquashed(git: Git, { head, base }: Compared, fork: string | null) {
  if (fork === null) return false;
  const names = await git.text('diff-tree', '-r', '--name-only', '--no-renames', '-z', fork, head);
  const files = names.split('\0').filter((name) => name !== '');
  if (files.length === 0 || files.length > maxFiles) return false;
  const paths = files.map((name) => `:(top,literal)${name}`);
  return git.isYes('diff-tree', '-r', '--quiet', base.commit, head, '--', ...paths);
}

class Git {
  constructor(
    private readonly call: Call,
    private readonly cwd: string,
  ) {}

  async text(...args: string[]): Promise<string> {
    const end = await this.call('git', args, this.cwd);
    if (end.kind === 'ended' && end.code === 0) return end.stdout;
    throw new Unanswered(complaint('git', end));
  }

  async line(...args: string[]): Promise<string> {
    return (await this.text(...args)).trim();
  }

  /** Null when git has no output. */
  async maybe(...args: string[]): Promise<string | null> {
    const end = await this.#ended(args);
    return end.code === 0 ? end.stdout.trim() : null;
  }

  /** For commands that exit with 0 for yes and 1 for no. */
  async isYes(...args: string[]): Promise<boolean> {
    const end = await this.#ended(args);
    if (end.code === 0 || end.code === 1) return end.code === 0;
    throw new Unanswered(complaint('git', end));
  }

  async #ended(args: string[]): Promise<CallEnd & { kind: 'ended' }> {
    const end = await this.call('git', args, this.cwd);
    if (end.kind === 'failed') throw new Unanswered(end.why);
    return end;
  }
}

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
