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
