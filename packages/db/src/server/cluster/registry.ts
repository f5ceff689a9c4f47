import { z } from 'zod';
import type { Compare, EtcdPort, KeyValue, Operation } from './etcd.js';
import type { Candidate } from './election.js';

const vote = z.object({
  term: z.number(),
  epoch: z.number(),
  seq: z.number(),
  lineageId: z.string(),
});
const nodeSchema = z.object({ address: z.string(), vote: vote.optional() });
const memberSchema = z.object({ address: z.string() });
const leaderSchema = z.object({
  nodeId: z.string(),
  address: z.string(),
  epoch: z.number(),
  /** False while the node that took the key does not accept writes yet. */
  isReady: z.boolean(),
});
const termSchema = z.object({ epoch: z.number(), minAcks: z.number(), lineageId: z.string() });

type RegisteredNode = z.output<typeof nodeSchema>;
export type Leader = z.output<typeof leaderSchema>;
type StoredTerm = z.output<typeof termSchema>;

interface Entry<Value> {
  value: Value;
  modRevision: string;
  lease: string;
}

/** The state of the cluster in etcd at one moment. */
export interface ClusterView {
  leader: Entry<Leader> | undefined;
  term: Entry<StoredTerm> | undefined;
  /** Nodes with a live lease, by id. */
  nodes: ReadonlyMap<string, Entry<RegisteredNode>>;
  /** Every node that has ever joined, by id. */
  members: ReadonlyMap<string, Entry<{ address: string }>>;
}

const absent = '0';

/** The keys of one cluster in etcd. */
export class Registry {
  readonly #prefix: string;

  constructor(
    private readonly etcd: EtcdPort,
    name: string,
  ) {
    this.#prefix = `/millrace/db/${name}/`;
  }

  async read(): Promise<ClusterView> {
    const nodes = new Map<string, Entry<RegisteredNode>>();
    const members = new Map<string, Entry<{ address: string }>>();
    let leader: Entry<Leader> | undefined;
    let term: Entry<StoredTerm> | undefined;
    for (const row of await this.etcd.list(this.#prefix)) {
      const [kind, id = ''] = row.key.slice(this.#prefix.length).split('/');
      if (kind === 'leader') leader = entryOf(row, leaderSchema);
      if (kind === 'term') term = entryOf(row, termSchema);
      if (kind === 'nodes') nodes.set(id, entryOf(row, nodeSchema));
      if (kind === 'members') members.set(id, entryOf(row, memberSchema));
    }
    return { leader, term, nodes, members };
  }

  /** Adds a node to the members, for good. */
  async join(nodeId: string, address: string): Promise<void> {
    const value = JSON.stringify({ address });
    await this.etcd.transact([], [{ put: this.#key(`members/${nodeId}`), value }]);
  }

  /** Registers a node for as long as its lease lives. */
  async register(nodeId: string, node: RegisteredNode, lease: string): Promise<void> {
    const value = JSON.stringify(node);
    await this.etcd.transact([], [{ put: this.#key(`nodes/${nodeId}`), value, lease }]);
  }

  /**
   * Takes the leader key if nobody has it, and the term and the votes that the choice depends on
   * have not changed. False: one of them has.
   */
  async acquire(
    { leader, term, lease }: { leader: Leader; term: StoredTerm; lease: string },
    view: ClusterView,
    voters: readonly string[],
  ): Promise<boolean> {
    const unchanged = (key: string, entry: Entry<unknown> | undefined): Compare => ({
      key: this.#key(key),
      modRevision: entry?.modRevision ?? absent,
    });
    return this.etcd.transact(
      [
        unchanged('leader', undefined),
        unchanged('term', view.term),
        ...voters.map((id) => unchanged(`nodes/${id}`, view.nodes.get(id))),
      ],
      [
        { put: this.#key('leader'), value: JSON.stringify(leader), lease },
        { put: this.#key('term'), value: JSON.stringify(term) },
      ],
    );
  }

  /** Changes keys of the cluster while the leader key is as it was read. */
  async asLeader(
    view: ClusterView,
    change: { leader?: Leader; term?: StoredTerm },
    lease: string,
  ): Promise<boolean> {
    const { leader, term } = change;
    const operations: Operation[] = [];
    if (leader) operations.push({ put: this.#key('leader'), value: JSON.stringify(leader), lease });
    if (term) operations.push({ put: this.#key('term'), value: JSON.stringify(term) });
    const { modRevision = absent } = view.leader ?? {};
    return this.etcd.transact([{ key: this.#key('leader'), modRevision }], operations);
  }

  /** Gives the leader key up. */
  async release(view: ClusterView): Promise<void> {
    const { modRevision = absent } = view.leader ?? {};
    const key = this.#key('leader');
    await this.etcd.transact([{ key, modRevision }], [{ delete: key }]);
  }

  #key(name: string): string {
    return this.#prefix + name;
  }
}

export function candidatesOf({ nodes }: ClusterView): Candidate[] {
  return Array.from(nodes, ([nodeId, { value }]) => ({ nodeId, vote: value.vote }));
}

function entryOf<Schema extends z.ZodType>(
  { value, modRevision, lease }: KeyValue,
  schema: Schema,
): Entry<z.output<Schema>> {
  return { value: schema.parse(JSON.parse(value)), modRevision, lease };
}
