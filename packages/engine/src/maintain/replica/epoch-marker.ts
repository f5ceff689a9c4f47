import { chainAfter, encodeCommit, type Change } from '../../format/changes.js';
import type { Core } from '../../core/core.js';
import { afterCommit } from '../../storage/file/state.js';

/**
 * Appends a commit without changes, the first one of a leader's epoch. Once enough followers have
 * it, their histories are newer than every history of an earlier epoch. Only inside a job.
 */
export function appendEpochMarker(core: Core): number {
  const { state, clock } = core;
  const seq = state.seq + 1;
  const { epoch } = state;
  const changes: Change[] = [];
  const chain = chainAfter(state.chain, { seq, epoch, changes }, () => '');
  core.writer.appendCommit(encodeCommit({ seq, at: clock.now(), epoch, chain, changes }));
  core.writer.state = afterCommit(state, seq, chain);
  return seq;
}
