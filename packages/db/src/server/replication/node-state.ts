import type { Core } from '@millrace/engine/core/core';
import { untilDurable } from '@millrace/engine/core/durable-snapshot';
import { appendEpochMarker } from '@millrace/engine/maintain/replica/epoch-marker';
import type { Role } from '../service/replication.js';

/** Persistent replication state of a node, stored with the commits. */
export interface NodeState {
  /** The last role; undefined: only ever the role of its settings. */
  role: Role | undefined;
  /** Address of the leader it followed when it was promoted. */
  followed: string;
  /** Address of the old leader while it does not know of the promotion. */
  untold: string;
  /** The leader it followed, or the one that fenced it, if known. */
  leader: string;
  /** Node id of the leader of the current epoch; "": unknown. */
  leaderId: string;
  /** Epoch of the leader that confirmed all commits of this node. */
  provenEpoch: number;
}

const name = 'replication';
export const nowhere: NodeState = {
  role: undefined,
  followed: '',
  untold: '',
  leader: '',
  leaderId: '',
  provenEpoch: 0,
};

export function readNodeState(core: Core): NodeState {
  const row = core.store.get('meta', Buffer.from(name));
  return row ? { ...nowhere, ...(JSON.parse(row.toString()) as Partial<NodeState>) } : nowhere;
}

/** Saves the state and, if it is higher, the epoch. Resolves when it is on disk. */
export function writeNodeState(core: Core, nodeState: NodeState, epoch = 0): Promise<void> {
  return core.writer.submit(() => {
    core.putMeta(name, nodeState);
    if (epoch > core.state.epoch) core.writer.state = { ...core.state, epoch };
  });
}

/** Begins the epoch of a new leader with a commit of its own; returns that commit's number. */
export async function startEpoch(core: Core, nodeState: NodeState, epoch: number): Promise<number> {
  const seq = await core.writer.submit(() => {
    core.putMeta(name, nodeState);
    core.writer.state = { ...core.state, epoch };
    return appendEpochMarker(core);
  });
  await untilDurable(core, seq);
  return seq;
}

/** In a cluster nobody leads at startup; a former leader is fenced until it follows. */
export function roleInCluster({ role }: NodeState): Role {
  return role === 'leader' || role === 'fenced' ? 'fenced' : 'follower';
}

/**
 * The role at startup. A promoted node keeps leading even if its settings still name its old
 * leader; only a different `follow` address makes it a follower. A former follower without `follow`
 * is fenced, because another node may lead.
 */
export function roleAtStart(nodeState: NodeState, follow: string | undefined): Role {
  if (follow !== undefined) {
    return nodeState.role === 'leader' && nodeState.followed === follow ? 'leader' : 'follower';
  }
  return nodeState.role === 'fenced' || nodeState.role === 'follower' ? 'fenced' : 'leader';
}
