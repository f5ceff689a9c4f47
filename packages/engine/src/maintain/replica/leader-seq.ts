import type { Core } from '../../core/core.js';

const name = 'leader_seq';

/**
 * Stores the leader's position, so that a follower that starts while its leader is down still knows
 * what it lacks. Only inside a job.
 */
export function noteLeaderSeq(core: Core, seq: number, epoch: number): void {
  core.putMeta(name, { seq, epoch });
}

/** The newest commit of the leader of this epoch that this node knows about; 0: none. */
export function notedLeaderSeq(core: Core): number {
  const row = core.store.get('meta', Buffer.from(name));
  if (!row) return 0;
  const { seq, epoch } = JSON.parse(row.toString()) as { seq: number; epoch: number };
  // The commits of another leader may never have become part of this history.
  return epoch === core.state.epoch ? seq : 0;
}
