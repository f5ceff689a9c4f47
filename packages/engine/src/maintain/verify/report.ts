/** What a problem was found in. */
export type ProblemKind =
  'meta' | 'record' | 'key' | 'index' | 'unique' | 'expiry' | 'log' | 'chain';

export interface Problem {
  kind: ProblemKind;
  /** The collection and record, the index or the commit. */
  where: string;
  detail: string;
}

export interface VerifyReport {
  ok: boolean;
  /** The commit that was checked. */
  seq: number;
  records: number;
  /** Entries of all indexes that are ready. */
  indexEntries: number;
  logEntries: number;
  /** The first hundred problems. */
  problems: Problem[];
  /** Total number of problems. */
  problemCount: number;
  elapsedMs: number;
}

const maxProblems = 100;

/** Collects problems: counts all and keeps the first hundred. */
export class Problems {
  readonly shown: Problem[] = [];
  count = 0;

  add(kind: ProblemKind, where: string, detail: string): void {
    this.count++;
    if (this.shown.length < maxProblems) this.shown.push({ kind, where, detail });
  }
}
