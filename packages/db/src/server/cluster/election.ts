/** A node that has stood down after the leader of `term`, and how far its history goes. */
export interface Vote {
  /** Epoch of the last leader; 0 before the first one. */
  term: number;
  epoch: number;
  seq: number;
  /** "": the node has no history. */
  lineageId: string;
}

export interface Candidate {
  nodeId: string;
  /** Undefined: it is registered and has not stood down yet. */
  vote: Vote | undefined;
}

/** The facts about the last leader. */
export interface Term {
  epoch: number;
  /** Followers that had every acknowledged write on disk. */
  minAcks: number;
  lineageId: string;
}

export interface Ballot {
  /** Undefined before the first leader. */
  term: Term | undefined;
  /** Every node that may hold acknowledged writes, running or not. */
  members: readonly string[];
  /** The nodes that are registered now. */
  candidates: readonly Candidate[];
  /** Whether nodes that did not vote so far have had enough time. */
  isGraceOver: boolean;
}

export type Outcome =
  | { kind: 'wait'; reason: string }
  /** `voters` are the nodes whose votes the choice depends on. */
  | { kind: 'elect'; nodeId: string; voters: readonly string[] };

/**
 * How many members must have voted. An acknowledged write is on `minAcks + 1` members, so any
 * `members - minAcks` of them include one that has it.
 */
export function votesNeeded(memberCount: number, minAcks: number): number {
  return minAcks === 0 ? 1 : Math.max(1, memberCount - minAcks);
}

/** Decides which node leads next. Every node that sees the same ballot decides the same. */
export function elect({ term, members, candidates, isGraceOver }: Ballot): Outcome {
  const isMember = new Set(members);
  const votes = candidates.flatMap(({ nodeId, vote }) =>
    isMember.has(nodeId) && vote?.term === (term?.epoch ?? 0) ? [{ nodeId, ...vote }] : [],
  );
  if (votes.length < candidates.length && !isGraceOver) {
    return { kind: 'wait', reason: 'waiting for the positions of all running nodes' };
  }
  const needed = term ? votesNeeded(members.length, term.minAcks) : 1;
  if (votes.length < needed) {
    const reason = `${votes.length} of ${members.length} members are here, ${needed} are needed`;
    return { kind: 'wait', reason };
  }
  const eligible = term ? votes.filter(({ lineageId }) => lineageId === term.lineageId) : votes;
  const [best] = eligible.sort(
    (a, b) => b.epoch - a.epoch || b.seq - a.seq || (a.nodeId < b.nodeId ? -1 : 1),
  );
  if (!best) return { kind: 'wait', reason: 'no running node has the history of this cluster' };
  return { kind: 'elect', nodeId: best.nodeId, voters: votes.map(({ nodeId }) => nodeId) };
}
