import type { Timer } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { World } from '@millrace/kit/world';
import type { ClusterState, Role } from '../service/replication.js';
import { elect, type Vote, type Lease } from './election.js';
import type { EtcdPort } from './etcd.js';
import { candidatesOf, Registry, type ClusterView, type Leader } from './registry.js';

/** What the cluster needs from the node that it controls. */
export interface ClusterNode {
  readonly role: Role;
  /** The highest epoch that the node knows. */
  readonly epoch: number;
  readonly isEpochConfirmed: boolean;
  /** Whether enough followers to acknowledge writes have reported within this time. */
  hasRecentAcks(withinMs: number): boolean;
  /** Neither leads nor follows any more; the returned position stays as it is. */
  standDown(): Promise<Omit<Vote, 'term'>>;
  followLeader(address: string): Promise<void>;
  lead(epoch: number): Promise<void>;
  suspend(): void;
  resume(): void;
}

export interface ClusterOptions extends World {
  etcd: EtcdPort;
  name: string;
  nodeId: string;
  ttlMs: number;
  minAcks: number;
  lease: Lease;
  /** Followers whose acks count. */
  onMembers: (members: ReadonlySet<string>) => void;
  lineageId: () => string;
}

/**
 * Keeps a node's role in step with etcd: renews its lease, follows the leader that holds the leader
 * key, and takes part in the election of the next one. See docs/decisions/0048.
 */
export class Cluster {
  readonly #registry: Registry;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #address = '';
  #view: ClusterView | undefined;
  #problem = 'starting';
  #expiry: Timer | undefined;
  /** The leader this node follows, as `address epoch`. */
  #following = '';
  #vote: Vote | undefined;
  /** The value that etcd has for this node. */
  #registered = '';
  /** Monotonic time when this node saw that there is no leader. */
  #leaderlessSince: number | undefined;
  /** Monotonic time before which this node does not stand for election again. */
  #abstainUntil = -Infinity;

  constructor(
    private readonly node: ClusterNode,
    private readonly options: ClusterOptions,
  ) {
    this.#registry = new Registry(options.etcd, options.name);
  }

  /** `address` is the gRPC address at which other nodes and clients reach this node. */
  start(address: string): void {
    this.#address = address;
    this.#running = this.#run();
  }

  /** Gives up the lease, so that another node can lead at once. */
  async stop(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    await this.#running;
    this.#expiry?.cancel();
    const { lease, etcd, log } = this.options;
    const { id } = lease;
    if (this.node.role === 'leader') await this.node.standDown();
    lease.lost();
    if (id !== undefined) {
      await etcd.revoke(id).catch((error: unknown) => {
        log.warn({ problem: messageOf(error) }, 'failed to revoke lease');
      });
    }
    etcd.close();
  }

  get state(): ClusterState {
    const { name, clock, lease } = this.options;
    const { leader, members = new Map(), nodes = new Map() } = this.#view ?? {};
    return {
      name,
      leader: leader?.value,
      members: Array.from(members, ([nodeId, { value }]) => ({
        nodeId,
        address: value.address,
        isRunning: nodes.has(nodeId),
      })),
      leaseRemainingMs: Math.max(0, lease.validUntil - clock.monotonic()),
      problem: this.#problem,
    };
  }

  async #run(): Promise<void> {
    const { clock, ttlMs } = this.options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#step().catch((error: unknown) => this.#report(messageOf(error)));
      // Elections take several steps, and nobody can write meanwhile.
      const delayMs = this.#leaderlessSince === undefined ? ttlMs / 20 : ttlMs / 100;
      await clock.sleep(delayMs, signal).catch(() => undefined);
    }
  }

  async #step(): Promise<void> {
    await this.#renew();
    const view = await this.#read();
    const { leader } = view;
    const { nodeId, lease } = this.options;
    if (!leader) return this.#elect(view);
    this.#leaderlessSince = undefined;
    if (leader.value.nodeId !== nodeId) return this.#follow(view, leader.value);
    if (leader.lease === lease.id) return this.#lead(view, leader.value);
    // The key is of an earlier process on this data directory, which cannot be running any more.
    await this.#registry.release(view);
  }

  async #read(): Promise<ClusterView> {
    const view = await this.#registry.read();
    this.#view = view;
    this.options.onMembers(new Set(view.members.keys()));
    return view;
  }

  async #renew(): Promise<void> {
    const { etcd, clock, lease, ttlMs } = this.options;
    const sentAt = clock.monotonic();
    const { id } = lease;
    if (id === undefined) {
      const granted = await etcd.grant(Math.ceil(ttlMs / 1000));
      lease.granted(granted.id, granted.ttlMs, sentAt);
      this.#registered = '';
    } else if (lease.isDue(sentAt)) {
      if (await etcd.keepAlive(id)) lease.renewed(id, sentAt);
      else await this.#loseLease();
    }
    this.#armExpiry();
  }

  async #loseLease(): Promise<void> {
    this.options.lease.lost();
    this.#registered = '';
    this.node.suspend();
    // A new lease must not bring back the leadership that the old one has lost.
    if (this.node.role === 'leader') await this.node.standDown();
    throw new Error('the lease has expired in etcd');
  }

  /** Stops writes at the moment the lease is in doubt, even if etcd does not answer. */
  #armExpiry(): void {
    const { clock, lease } = this.options;
    this.#expiry?.cancel();
    const leftMs = lease.validUntil - clock.monotonic();
    this.#expiry = clock.after(Math.max(0, leftMs), () => this.node.suspend());
  }

  async #register(view: ClusterView): Promise<void> {
    const { nodeId, lease } = this.options;
    const address = this.#address;
    if (view.members.get(nodeId)?.value.address !== address) {
      await this.#registry.join(nodeId, address);
    }
    const node = { address, ...(this.#vote && { vote: this.#vote }) };
    const registered = JSON.stringify(node);
    if (registered === this.#registered && view.nodes.has(nodeId)) return;
    await this.#registry.register(nodeId, node, lease.id ?? '0');
    this.#registered = registered;
  }

  async #follow(view: ClusterView, leader: Leader): Promise<void> {
    await this.#register(view);
    if (this.#address.startsWith('grpcs:') && !leader.address.startsWith('grpcs:')) {
      // This node's key must not leave it in clear text, whatever etcd says.
      this.#report(`the leader ${leader.address} has no TLS, but this node does`);
      return;
    }
    const wanted = `${leader.address} ${leader.epoch}`;
    if (!leader.isReady) {
      if (this.node.role === 'leader') await this.node.standDown();
      this.#report(`waiting for ${leader.address} to lead`);
      return;
    }
    if (this.#following !== wanted || this.node.role !== 'follower') {
      await this.node.followLeader(leader.address);
      this.#following = wanted;
    }
    this.#vote = undefined;
    this.#report('');
  }

  /** This node holds the leader key. */
  async #lead(view: ClusterView, leader: Leader): Promise<void> {
    const { lease, clock, minAcks } = this.options;
    const id = lease.id ?? '0';
    if (this.#isCutOff(view)) return this.#stepAside(view);
    if (this.node.role !== 'leader') {
      if (leader.isReady) return this.#registry.release(view);
      await this.#promote(leader.epoch);
    }
    if (!leader.isReady) {
      await this.#registry.asLeader(view, { leader: { ...leader, isReady: true } }, id);
    }
    if (lease.isValid(clock.monotonic())) this.node.resume();
    const term = view.term?.value;
    // The next election may rely on more acks only once this epoch has them.
    if (leader.isReady && term && term.minAcks < minAcks && this.node.isEpochConfirmed) {
      await this.#registry.asLeader(view, { term: { ...term, minAcks } }, id);
    }
    this.#vote = undefined;
    await this.#register(view);
    this.#report('');
  }

  /**
   * Whether this leader has followers that run but no longer reach it, so that no write can be
   * acknowledged. Another node may be reachable.
   */
  #isCutOff({ nodes }: ClusterView): boolean {
    const { minAcks, ttlMs } = this.options;
    const others = nodes.size - 1;
    return this.node.isEpochConfirmed && others >= minAcks && !this.node.hasRecentAcks(ttlMs);
  }

  async #stepAside(view: ClusterView): Promise<void> {
    const { clock, ttlMs, log } = this.options;
    log.warn({ epoch: this.node.epoch }, 'no follower reaches this leader, stepping down');
    this.#abstainUntil = clock.monotonic() + 2 * ttlMs;
    await this.node.standDown();
    await this.#registry.release(view);
  }

  async #promote(epoch: number): Promise<void> {
    this.#following = '';
    try {
      await this.node.lead(epoch);
    } catch (error) {
      const { clock, ttlMs, log, lease, etcd } = this.options;
      log.error({ err: error, epoch }, 'promotion failed');
      this.#abstainUntil = clock.monotonic() + 2 * ttlMs;
      const { id } = lease;
      lease.lost();
      if (id !== undefined) await etcd.revoke(id);
      throw error;
    }
  }

  /** There is no leader: publishes this node's position and leads if it is the best one. */
  async #elect(view: ClusterView): Promise<void> {
    const { clock, ttlMs, nodeId, lease } = this.options;
    const now = clock.monotonic();
    this.#leaderlessSince ??= now;
    const term = view.term?.value.epoch ?? 0;
    this.#following = '';
    if (now < this.#abstainUntil) {
      this.#vote = undefined;
      await this.#register(view);
      return this.#report('abstaining after a failed promotion');
    }
    if (this.#vote?.term !== term || this.node.role === 'leader') {
      this.#vote = { term, ...(await this.node.standDown()) };
    }
    await this.#register(view);
    const fresh = await this.#read();
    if (fresh.leader || (fresh.term?.value.epoch ?? 0) !== term) return;
    const outcome = elect({
      term: fresh.term?.value,
      members: [...fresh.members.keys()],
      candidates: candidatesOf(fresh),
      isGraceOver: now - this.#leaderlessSince >= ttlMs / 5,
    });
    if (outcome.kind === 'wait') return this.#report(`no leader: ${outcome.reason}`);
    if (outcome.nodeId !== nodeId) return this.#report(`no leader: ${outcome.nodeId} is to lead`);
    if (!lease.isValid(clock.monotonic())) return;
    await this.#acquire(fresh, outcome.voters);
  }

  async #acquire(view: ClusterView, voters: readonly string[]): Promise<void> {
    const { nodeId, lease, minAcks, lineageId } = this.options;
    const last = view.term?.value;
    const epoch = Math.max(last?.epoch ?? 0, this.node.epoch) + 1;
    const address = this.#address;
    const leader = { nodeId, address, epoch, isReady: false };
    const term = {
      epoch,
      minAcks: Math.min(last?.minAcks ?? minAcks, minAcks),
      lineageId: lineageId(),
    };
    const isTaken = await this.#registry.acquire(
      { leader, term, lease: lease.id ?? '0' },
      view,
      voters,
    );
    if (!isTaken) return;
    this.options.log.info({ epoch, voters: voters.length }, 'leader key acquired');
    const fresh = await this.#read();
    if (fresh.leader?.lease === lease.id) await this.#lead(fresh, leader);
  }

  /** Logs a problem when it changes. */
  #report(problem: string): void {
    if (problem === this.#problem) return;
    const { log, name } = this.options;
    this.#problem = problem;
    if (problem === '') log.info({ cluster: name }, 'cluster has a leader');
    else log.warn({ cluster: name, problem }, 'cluster is not ready');
  }
}
