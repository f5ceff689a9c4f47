import { UsageError } from '@millrace/kit/errors';

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
interface Term {
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

type Outcome =
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

/** Share of the TTL after which a leader that could not renew its lease stops accepting writes. */
const safeShare = 2 / 3;

/**
 * What this node knows about its lease in etcd. Times are of the monotonic clock. A renewal counts
 * from the moment its request was sent, so the lease in etcd always ends later than here.
 */
export class Lease {
  #id: string | undefined;
  #renewedAt = -Infinity;
  #ttlMs: number;

  constructor(private readonly wantedTtlMs: number) {
    this.#ttlMs = wantedTtlMs;
  }

  get id(): string | undefined {
    return this.#id;
  }

  /** etcd granted a lease; the request was sent at `sentAt`. */
  granted(id: string, ttlMs: number, sentAt: number): void {
    this.#id = id;
    this.#renewedAt = sentAt;
    // etcd may grant more than wanted; the shorter one is safe.
    this.#ttlMs = Math.min(ttlMs, this.wantedTtlMs);
  }

  renewed(id: string, sentAt: number): void {
    if (id === this.#id) this.#renewedAt = Math.max(this.#renewedAt, sentAt);
  }

  /** etcd no longer knows the lease, or it was given up. */
  lost(): void {
    this.#id = undefined;
    this.#renewedAt = -Infinity;
  }

  /** Whether no other node can lead yet, with a third of the TTL to spare. */
  isValid(now: number): boolean {
    return this.#id !== undefined && now < this.validUntil;
  }

  get validUntil(): number {
    return this.#renewedAt + this.#ttlMs * safeShare;
  }

  /** Whether it is time to renew. */
  isDue(now: number): boolean {
    return now >= this.#renewedAt + this.#ttlMs / 5;
  }
}

/** Where the cluster keeps its state: etcd servers, and the name under which it does. */
interface ClusterAddress {
  /** Base URLs of the etcd servers. */
  readonly endpoints: readonly string[];
  readonly name: string;
}

const example = 'etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/name';

/** Parses `etcd://host:port,host:port/name`; `etcds://` uses TLS. The default port is 2379. */
export function parseClusterAddress(url: string): ClusterAddress {
  const match = /^(etcds?):\/\/([^/\s?#@]+)\/([A-Za-z0-9][A-Za-z0-9_.-]{0,63})$/.exec(url);
  if (!match) throw new UsageError(`cluster: "${url}" is not an etcd address; use ${example}`);
  const [, scheme, hosts = '', name = ''] = match;
  const protocol = scheme === 'etcds' ? 'https' : 'http';
  const endpoints = hosts.split(',').map((host) => endpointOf(protocol, host, url));
  return { endpoints, name };
}

function endpointOf(protocol: string, host: string, url: string): string {
  const match = /^(\[[0-9A-Fa-f:.%]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(host);
  const port = Number(match?.[2] ?? 2379);
  if (!match || port < 1 || port > 65_535) {
    throw new UsageError(`cluster: "${host}" in "${url}" is not a host and port; use ${example}`);
  }
  return `${protocol}://${match[1]}:${port}`;
}
