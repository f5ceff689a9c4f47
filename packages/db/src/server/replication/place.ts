import type { Core } from '../../engine/core.js';
import type { Role } from '../service/replication.js';

/** What a node remembers of its place among the others. Lies in the store, with the commits. */
export interface Place {
  /** What it became last. undefined: it has only ever been what its settings say. */
  role: Role | undefined;
  /** The address it followed when it was promoted. */
  followed: string;
  /** Its old leader, when that one has not heard of the promotion yet. */
  untold: string;
  /** Whom it followed, or who fenced it, as far as known. */
  leader: string;
  /** Node id of the leader of the present epoch. "": not known. */
  leaderId: string;
  /** Epoch of the leader that has found all commits of this node in its own history. */
  provenEpoch: number;
}

const name = 'replication';
export const nowhere: Place = {
  role: undefined,
  followed: '',
  untold: '',
  leader: '',
  leaderId: '',
  provenEpoch: 0,
};

export function readPlace(core: Core): Place {
  const row = core.store.get('meta', Buffer.from(name));
  return row ? { ...nowhere, ...(JSON.parse(row.toString()) as Partial<Place>) } : nowhere;
}

/** Notes the place, and with it the epoch when that has risen. Resolves when it is on disk. */
export function writePlace(core: Core, place: Place, epoch = 0): Promise<void> {
  return core.writer.submit(() => {
    core.putMeta(name, place);
    if (epoch > core.state.epoch) core.writer.state = { ...core.state, epoch };
  });
}

/**
 * What a node is when it starts. One that was promoted leads on although it is still told to follow
 * its old leader: only another address to follow says that someone has thought about it. One that
 * followed, and is not told whom to follow any more, does not lead for that: someone else may.
 */
export function roleAtStart(place: Place, follow: string | undefined): Role {
  if (follow !== undefined) {
    return place.role === 'leader' && place.followed === follow ? 'leader' : 'follower';
  }
  return place.role === 'fenced' || place.role === 'follower' ? 'fenced' : 'leader';
}
