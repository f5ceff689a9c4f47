import { stat } from 'node:fs/promises';
import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Session } from '../sessions/port.js';
import { readCi, unknown, type CiReport } from './ci.js';
import { compare, type Comparison } from './comparison.js';
import type { Call } from './programs.js';
import { readRefs, type Place, type Refs } from './refs.js';

export type Standing = DaemonSchema<'BranchStanding'>;

/** What one look at a session's branch has found. */
export interface Look {
  standing: Omit<Standing, 'agent_id' | 'name' | 'observed_at'>;
  /** The commit at the tip of the branch, and the one at which it left its base. */
  head: string | null;
  fork: string | null;
}

/** A session that has something to look at. */
export function isTracked({ branch, worktree, repo }: Session): boolean {
  return branch !== null || worktree !== null || repo !== null;
}

const ended: ReadonlySet<string> = new Set(['done', 'errored', 'orphaned']);

export function hasEnded({ status }: Session): boolean {
  return ended.has(status);
}

/** One round of looks, in which nothing is asked twice. */
export class Round {
  readonly #call: Call;
  readonly #looks = new Map<string, Promise<Look>>();
  readonly #reports = new Map<string, Promise<CiReport>>();
  #slow: string | undefined;

  constructor(
    call: Call,
    private readonly memory: Memory,
  ) {
    // A CI service that is slow for one branch is slow for all: one wait is enough.
    this.#call = async (program, args, cwd) => {
      if (program === 'gh' && this.#slow) return { kind: 'failed', why: this.#slow };
      const end = await call(program, args, cwd);
      if (program === 'gh' && end.kind === 'failed' && end.why.includes('longer')) {
        this.#slow = end.why;
      }
      return end;
    };
  }

  async lookAt(session: Session): Promise<Look> {
    const place = await placeOf(session);
    const key = JSON.stringify(place);
    const there = this.#looks.get(key);
    if (there) return there;
    const look = this.#look(place);
    this.#looks.set(key, look);
    return look;
  }

  async #look(place: Place): Promise<Look> {
    const { cwd } = place;
    const refs = await readRefs(this.#call, place);
    const { branch, head, base } = refs;
    const [comparison, report] = await Promise.all([
      this.#compare(cwd, refs),
      head === null ? unknown(null) : this.#report(cwd, head),
    ]);
    const errors = [refs.error, comparison.error, report.error].filter((each) => each !== null);
    return {
      standing: {
        branch,
        base: base?.name ?? null,
        ci: report.ci,
        checks: report.checks,
        ahead: comparison.ahead,
        behind: comparison.behind,
        merged: comparison.merged,
        error: errors.length === 0 ? null : [...new Set(errors)].join('; '),
      },
      head,
      fork: comparison.fork,
    };
  }

  async #compare(cwd: string, { branch, head, base }: Refs): Promise<Comparison> {
    if (branch === null || head === null || base === null) return nothingToCompare;
    return this.memory.comparison({ cwd, branch, head, base }, this.#call);
  }

  #report(cwd: string, head: string): Promise<CiReport> {
    const there = this.#reports.get(head);
    if (there) return there;
    const report = readCi(this.#call, cwd, head);
    this.#reports.set(head, report);
    return report;
  }
}

const nothingToCompare: Comparison = {
  ahead: null,
  behind: null,
  merged: null,
  fork: null,
  error: null,
};

const mostRemembered = 2_000;

/** What two commits have to do with one another never changes. */
export class Memory {
  readonly #comparisons = new Map<string, Comparison>();
  /** Tips that the base had once: it goes on having them, whatever becomes of their files. */
  readonly #merged = new Set<string>();

  async comparison(asked: Parameters<typeof compare>[1], call: Call): Promise<Comparison> {
    const { cwd, branch, head, base } = asked;
    const tip = `${cwd}\0${branch}\0${head}`;
    const key = `${tip}\0${base.name}\0${base.commit}`;
    const known = this.#comparisons.get(key);
    if (known) return known;
    const found = await compare(call, asked);
    if (found.error !== null) return found;
    const comparison = this.#merged.has(tip) ? { ...found, merged: true } : found;
    this.#comparisons.set(key, comparison);
    if (comparison.merged) this.#merged.add(tip);
    forgetFirst(this.#comparisons);
    forgetFirst(this.#merged);
    return comparison;
  }
}

function forgetFirst(kept: Map<string, unknown> | Set<string>): void {
  for (const key of kept.keys()) {
    if (kept.size <= mostRemembered) return;
    kept.delete(key);
  }
}

/** Where to look: its own directory, or the repository when that is gone. */
async function placeOf(session: Session): Promise<Place> {
  const { worktree, workdir, repo, branch: told } = session;
  const own = worktree ?? workdir;
  const isThere = await stat(own).then(
    () => true,
    () => false,
  );
  if (isThere) return { cwd: own, told, isShared: worktree === null && hasEnded(session) };
  return { cwd: repo ?? own, told, isShared: true };
}
