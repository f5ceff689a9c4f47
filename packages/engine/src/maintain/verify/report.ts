/** What is wrong with a database, by the thing that it is wrong with. */
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
  /** The commit whose state was looked at. */
  seq: number;
  records: number;
  /** Entries of all indexes that are ready. */
  indexEntries: number;
  logEntries: number;
  /** The first hundred. */
  problems: Problem[];
  /** How many there are in all. */
  problemCount: number;
  elapsedMs: number;
}

const maxProblems = 100;

/** Gathers problems, the first hundred of them in full. */
export class Problems {
  readonly shown: Problem[] = [];
  count = 0;

  add(kind: ProblemKind, where: string, detail: string): void {
    this.count++;
    if (this.shown.length < maxProblems) this.shown.push({ kind, where, detail });
  }
}
