import { refuse } from './refusal.js';

export type UpdateMode = 'replace' | 'merge';

/** Whether the caller asks for a merge. Anything but the two modes, in either case, is refused. */
export function isMerge(mode: string | undefined): boolean {
  if (mode === undefined || mode === 'replace' || mode === 'REPLACE') return false;
  if (mode === 'merge' || mode === 'MERGE') return true;
  throw refuse('BAD_REQUEST', `mode must be "replace" or "merge", not ${JSON.stringify(mode)}.`);
}
