import { refuse } from '../../engine/refusal.js';

export function readOnlyReplica(leader: string): Error {
  return refuse(
    'READ_ONLY_REPLICA',
    `This node is a follower and takes no writes; send them to its leader, ${leader}.`,
    { leader },
  );
}

export function fenced(epoch: number, leader: string): Error {
  const where = leader === '' ? '' : ` at ${leader}`;
  return refuse(
    'FENCED',
    `This node takes no writes any more: it knows of another leader${where}, of epoch ${epoch}. ` +
      'Start it again with follow to have it copy that one.',
    { epoch: String(epoch), leader },
  );
}

/** To a promotion that would make a second leader. */
export function newerLeader(epoch: number, leader: string): Error {
  const where = leader === '' ? '' : ` at ${leader}`;
  return refuse(
    'FENCED',
    `Another node${where} was promoted in epoch ${epoch}, and this one may lack commits of it: ` +
      'follow that one, or promote this one with force.',
    { epoch: String(epoch), leader },
  );
}

export function notLeader(leader: string): Error {
  return refuse(
    'NOT_LEADER',
    `This node does not lead, so no follower can follow it; follow its leader, ${leader}.`,
    { leader },
  );
}

export function lineageMismatch(lineageId: string): Error {
  return refuse(
    'LINEAGE_MISMATCH',
    `This is another database (lineage ${lineageId}); a follower of it needs an empty data ` +
      'directory.',
    { lineage_id: lineageId },
  );
}

export function diverged(ackedSeq: number, afterSeq: number): Error {
  return refuse(
    'DIVERGED',
    `Commit ${ackedSeq} of the follower is not in the history of this leader; it must set aside ` +
      `its commits after ${afterSeq}, if not more.`,
    { diverged_after_seq: String(afterSeq) },
  );
}

export function replicaLag(lag: number): Error {
  return refuse(
    'REPLICA_LAG',
    `This follower lacks ${lag} commits of its leader; wait until it has them, or promote with ` +
      'force and lose them.',
    { lag: String(lag) },
  );
}

export function noFirstCopy(): Error {
  return refuse('NOT_READY', 'This follower has no first copy of its leader yet; try again.');
}

export function changingOver(): Error {
  return refuse('NOT_READY', 'This follower goes over to a fresh copy of its leader; try again.');
}

export function notEnoughAcks(seq: number, minAcks: number, acks: number): Error {
  return refuse(
    'NOT_ENOUGH_ACKS',
    `The write is on the disk of the leader as commit ${seq}, but ${acks} of the ${minAcks} ` +
      'followers asked for confirmed it in time; repeat it with the same request_id.',
    { min_acks: String(minAcks), acks: String(acks) },
  );
}
