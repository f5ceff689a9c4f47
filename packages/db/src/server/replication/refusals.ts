import { refuse } from '@millrace/engine/value/refusal';

export function readOnlyReplica(leader: string): Error {
  return refuse(
    'READ_ONLY_REPLICA',
    `This node is a follower and accepts no writes. Send them to its leader, ${leader}.`,
    { leader },
  );
}

export function fenced(epoch: number, leader: string): Error {
  const where = leader === '' ? '' : ` at ${leader}`;
  return refuse(
    'FENCED',
    `This node no longer accepts writes: another leader${where} has epoch ${epoch}. ` +
      'Restart it with follow set to that leader.',
    { epoch: String(epoch), leader },
  );
}

/** Refuses a write on a node of a cluster that does not lead at present. */
export function notLeading(epoch: number, leader: string): Error {
  const where = leader === '' ? 'No leader is known yet; retry later.' : `The leader is ${leader}.`;
  return refuse('FENCED', `This node does not lead its cluster and accepts no writes. ${where}`, {
    epoch: String(epoch),
    leader,
  });
}

/** Refuses a write on a leader that could not renew its lease. */
export function leaseExpired(epoch: number): Error {
  return refuse(
    'FENCED',
    'This node leads the cluster but could not renew its lease in etcd, so another node may lead ' +
      'soon. Retry later, or check etcd.',
    { epoch: String(epoch), leader: '' },
  );
}

/** A write that is on disk but must not be acknowledged, because the lease has expired. */
export function unconfirmed(seq: number, minAcks: number): Error {
  return refuse(
    'NOT_ENOUGH_ACKS',
    `The node has the write on disk as commit ${seq}, but its lease expired before it could ` +
      'acknowledge it. Retry it with the same request_id.',
    { min_acks: String(minAcks), acks: '0' },
  );
}

export function etcdDecides(epoch: number, leader: string): Error {
  return refuse(
    'FENCED',
    'The leader of this cluster is decided by etcd, so no node can be promoted by hand. To move ' +
      'the leader, restart the one that leads.',
    { epoch: String(epoch), leader },
  );
}

/** Refuses a promotion that would create a second leader. */
export function newerLeader(epoch: number, leader: string): Error {
  const where = leader === '' ? '' : ` at ${leader}`;
  return refuse(
    'FENCED',
    `Another node${where} was promoted in epoch ${epoch}, and this one may lack its commits. ` +
      'Follow that leader, or promote this node with force.',
    { epoch: String(epoch), leader },
  );
}

export function notLeader(leader: string): Error {
  return refuse('NOT_LEADER', `This node does not lead. Follow its leader, ${leader}.`, { leader });
}

export function lineageMismatch(lineageId: string): Error {
  return refuse(
    'LINEAGE_MISMATCH',
    `This is another database (lineage ${lineageId}). A follower of it needs an empty data ` +
      'directory.',
    { lineage_id: lineageId },
  );
}

export function diverged(ackedSeq: number, afterSeq: number): Error {
  return refuse(
    'DIVERGED',
    `Commit ${ackedSeq} of the follower is not in the history of this leader. It must save ` +
      `and remove its commits after ${afterSeq}, or more.`,
    { diverged_after_seq: String(afterSeq) },
  );
}

export function replicaLag(lag: number): Error {
  return refuse(
    'REPLICA_LAG',
    `This follower lacks ${lag} commits of its leader. Wait until it has them, or promote with ` +
      'force and lose them.',
    { lag: String(lag) },
  );
}

export function noFirstCopy(): Error {
  return refuse('NOT_READY', 'This follower has no first copy of its leader yet. Retry later.');
}

export function switchingCopy(): Error {
  return refuse(
    'NOT_READY',
    'This follower is switching to a new copy of its leader. Retry later.',
  );
}

export function notEnoughAcks(seq: number, minAcks: number, acks: number): Error {
  return refuse(
    'NOT_ENOUGH_ACKS',
    `The leader has the write on disk as commit ${seq}, but only ${acks} of ${minAcks} required ` +
      'followers confirmed it in time. Retry it with the same request_id.',
    { min_acks: String(minAcks), acks: String(acks) },
  );
}
