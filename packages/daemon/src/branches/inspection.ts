import { existsSync } from 'node:fs';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { isLive } from '../core/session.js';
import type { Session } from '../sessions/port.js';
import { readCi, unknown, type CiReport } from './ci.js';
import { compare, readRefs, type Comparison, type Place, type Refs } from './comparison.js';
import type { Call } from './programs.js';

export type BranchStatus = DaemonSchema<'BranchStanding'>;

/** The state of a session's branch. */
export interface Inspection {
  status: Omit<BranchStatus, 'agent_id' | 'name' | 'observed_at'>;
  /** The tip of the branch, and its merge base. */
  head: string | null;
  fork: string | null;
}

/** One round of inspections; each place and commit is queried once. */
export class Round {
  readonly #call: Call;
  readonly #inspections = new Map<string, Promise<Inspection>>();
  readonly #reports = new Map<string, Promise<CiReport>>();
  #slow: string | undefined;

  constructor(
    call: Call,
    private readonly memory: ComparisonCache,
  ) {
    // A CI service that timed out for one branch is skipped for the rest of the round.
    this.#call = async (program, args, cwd) => {
      if (program === 'gh' && this.#slow) return { kind: 'failed', why: this.#slow };
      const end = await call(program, args, cwd);
      if (program === 'gh' && end.kind === 'failed' && end.why.includes('longer')) {
        this.#slow = end.why;
      }
      return end;
    };
  }

  async inspect(session: Session): Promise<Inspection> {
    const place = placeOf(session);
    const key = JSON.stringify(place);
    const cached = this.#inspections.get(key);
    if (cached) return cached;
    const inspection = this.#inspect(place);
    this.#inspections.set(key, inspection);
    return inspection;
  }

  async #inspect(place: Place): Promise<Inspection> {
    const { cwd } = place;
    const refs = await readRefs(this.#call, place);
    const { branch, head, base } = refs;
    const [comparison, report, uncommitted] = await Promise.all([
      this.#compare(cwd, refs),
      head === null ? unknown(null) : this.#report(cwd, head),
      place.isShared || head === null ? null : uncommittedCount(this.#call, cwd, head),
    ]);
    const errors = [refs.error, comparison.error, report.error].filter((each) => each !== null);
    return {
      status: {
        branch,
        base: base?.name ?? null,
        ci: report.ci,
        checks: report.checks,
        ahead: comparison.ahead,
        behind: comparison.behind,
        merged: comparison.merged,
        uncommitted,
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
    const cached = this.#reports.get(head);
    if (cached) return cached;
    const report = readCi(this.#call, cwd, head);
    this.#reports.set(head, report);
    return report;
  }
}

/** Changed and new files. The index is not written: the agent may be using it. */
async function uncommittedCount(call: Call, cwd: string, head: string): Promise<number | null> {
  const lists = [
    await call('git', ['diff', '--name-only', head, '--'], cwd),
    await call('git', ['ls-files', '--others', '--exclude-standard'], cwd),
  ];
  const names = lists.map((end) =>
    end.kind === 'ended' && end.code === 0 ? end.stdout.split('\n').filter(Boolean) : undefined,
  );
  return names.includes(undefined) ? null : names.flat().length;
}

const nothingToCompare: Comparison = {
  ahead: null,
  behind: null,
  merged: null,
  fork: null,
  error: null,
};

const maxEntries = 2_000;

/** Cache of comparisons: the relation of two commits never changes. */
export class ComparisonCache {
  readonly #comparisons = new Map<string, Comparison>();
  /** Tips once contained in the base; they stay merged even when their files change later. */
  readonly #merged = new Set<string>();

  async comparison(params: Parameters<typeof compare>[1], call: Call): Promise<Comparison> {
    const { cwd, branch, head, base } = params;
    const tip = `${cwd}\0${branch}\0${head}`;
    const key = `${tip}\0${base.name}\0${base.commit}`;
    const cached = this.#comparisons.get(key);
    if (cached) return cached;
    const found = await compare(call, params);
    if (found.error !== null) return found;
    const comparison = this.#merged.has(tip) ? { ...found, merged: true } : found;
    this.#comparisons.set(key, comparison);
    if (comparison.merged) this.#merged.add(tip);
    evictOldest(this.#comparisons);
    evictOldest(this.#merged);
    return comparison;
  }
}

function evictOldest(cache: Map<string, unknown> | Set<string>): void {
  for (const key of cache.keys()) {
    if (cache.size <= maxEntries) return;
    cache.delete(key);
  }
}

/** The session's own directory, or its repository when that no longer exists. */
function placeOf(session: Session): Place {
  const { worktree, workdir, repo, branch: recordedBranch } = session;
  const own = worktree ?? workdir;
  if (existsSync(own))
    return { cwd: own, recordedBranch, isShared: worktree === null && !isLive(session) };
  return { cwd: repo ?? own, recordedBranch, isShared: true };
}
