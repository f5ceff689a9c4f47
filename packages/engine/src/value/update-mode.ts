import { refuse } from './refusal.js';

export type UpdateMode = 'replace' | 'merge';

/** Whether the mode is a merge. Refuses anything but the two modes, in upper or lower case. */
export function isMerge(mode: string | undefined): boolean {
  if (mode === undefined || mode === 'replace' || mode === 'REPLACE') return false;
  if (mode === 'merge' || mode === 'MERGE') return true;
  throw refuse('BAD_REQUEST', `mode must be "replace" or "merge", not ${JSON.stringify(mode)}.`);
}
