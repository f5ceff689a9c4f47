import { sleepOn, type Clock } from '@millrace/kit/clock';
import type { Simulation } from '@millrace/kit/simulation';
import { silentLog } from '@millrace/kit/log';
import type { Role } from '../service/replication.js';
import { Cluster, type ClusterNode } from './cluster.js';
import { EtcdError } from './etcd.js';
import { Lease } from './election.js';
import type { SimulatedEtcd } from './simulated-etcd.test-support.js';

export interface Entry {
  epoch: number;
  /** Unique; "" for the first commit of an epoch. */
  value: string;
}

/**
 * A node of a cluster in virtual time, with a log in place of a database. It can pause, as with
 * SIGSTOP, and its clock may run too fast or too slow.
 */
export class SimulatedNode implements ClusterNode {
  role: Role = 'follower';
  epoch = 0;
  log: Entry[] = [];
  isCut = false;
  readonly nodeId: string;
  readonly #lease: Lease;
  readonly #acked = new Map<string, number>();
  #leaderAddress = '';
  #markerSeq = 0;
  #members: ReadonlySet<string> = new Set();
  #pausedUntil = 0;
  #life = 0;
  readonly #clock: Clock;

  constructor(
    private readonly world: Simulation,
    private readonly etcd: SimulatedEtcd,
    private readonly all: readonly SimulatedNode[],
    readonly index: number,
    private readonly options: { minAcks: number; ttlMs: number },
    private readonly onLead: (node: SimulatedNode) => void,
  ) {
    this.nodeId = `N${index}`;
    this.#lease = new Lease(options.ttlMs);
    const rate = 1 + (index - 1) / 20;
    const { clock } = world;
    const after: Clock['after'] = (delayMs, run) => {
      const life = this.#life;
      const wake = () => {
        if (life !== this.#life) return;
        const leftMs = this.#pausedUntil - clock.monotonic();
        if (leftMs > 0) timer = clock.after(leftMs, wake);
        else run();
      };
      let timer = clock.after(delayMs / rate, wake);
      return { cancel: () => timer.cancel() };
    };
    this.#clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic() * rate,
      after,
      sleep: (delayMs, signal) => sleepOn(this.#clock, delayMs, signal),
    };
    this.#boot();
  }

  get isPaused(): boolean {
    return this.#pausedUntil > this.world.clock.monotonic();
  }

  /** Whether a client's write would be accepted at this moment. */
  get acceptsWrites(): boolean {
    return !this.isPaused && this.role === 'leader' && this.#lease.isValid(this.#clock.monotonic());
  }

  get isEpochConfirmed(): boolean {
    return this.#safeSeq >= this.#markerSeq;
  }

  hasRecentAcks(): boolean {
    return true;
  }

  pause(durationMs: number): void {
    this.#pausedUntil = this.world.clock.monotonic() + durationMs;
  }

  /** Power loss: the log survives, everything in memory does not. */
  crash(downMs: number): void {
    this.#life++;
    this.role = 'follower';
    this.#leaderAddress = '';
    this.#lease.lost();
    const life = this.#life;
    this.world.clock.after(downMs, () => {
      if (life === this.#life) this.#boot();
    });
  }

  /** Writes one entry; true when it may be acknowledged. */
  async write(value: string): Promise<boolean> {
    if (!this.acceptsWrites) return false;
    const life = this.#life;
    const seq = this.log.push({ epoch: this.epoch, value });
    const { epoch } = this;
    for (let tries = 0; tries < 5; tries++) {
      await this.#clock.sleep(1_000);
      if (life !== this.#life || this.role !== 'leader' || this.epoch !== epoch) return false;
      if (this.#safeSeq >= Math.max(seq, this.#markerSeq)) {
        return this.#lease.isValid(this.#clock.monotonic());
      }
    }
    return false;
  }

  async standDown() {
    if (this.role === 'leader') this.role = 'fenced';
    this.#leaderAddress = '';
    return {
      epoch: this.log.at(-1)?.epoch ?? 0,
      seq: this.log.length,
      lineageId: this.log.length > 0 ? 'lineage' : '',
    };
  }

  async followLeader(address: string): Promise<void> {
    await this.standDown();
    this.role = 'follower';
    this.#leaderAddress = address;
  }

  async lead(epoch: number): Promise<void> {
    await this.standDown();
    this.epoch = epoch;
    this.#markerSeq = this.log.push({ epoch, value: '' });
    this.#acked.clear();
    this.role = 'leader';
    this.onLead(this);
  }

  suspend(): void {}
  resume(): void {}

  get #safeSeq(): number {
    const acked = [...this.#acked].flatMap(([id, seq]) => (this.#members.has(id) ? [seq] : []));
    const { minAcks } = this.options;
    return minAcks === 0 ? Infinity : (acked.sort((a, b) => b - a)[minAcks - 1] ?? 0);
  }

  #boot(): void {
    const { world, nodeId } = this;
    const life = this.#life;
    const hop = async () => {
      await this.#clock.sleep(world.between([1, world.random.next() < 0.01 ? 5_000 : 60]));
      if (life !== this.#life) await new Promise(() => undefined);
      if (this.isCut || world.random.next() < 0.002) throw new EtcdError('no answer');
    };
    const cluster = new Cluster(this, {
      clock: this.#clock,
      random: world.random,
      log: silentLog,
      etcd: this.etcd.portOf(hop),
      name: 'simulated',
      nodeId,
      ...this.options,
      lease: this.#lease,
      onMembers: (members) => (this.#members = members),
      lineageId: () => 'lineage',
    });
    cluster.start(nodeId);
    void this.#replicate(life);
  }

  /** Copies from the leader and acknowledges, with a random delay each way. */
  async #replicate(life: number): Promise<void> {
    const { world } = this;
    while (life === this.#life) {
      await this.#clock.sleep(world.between([200, 4_000]));
      const address = this.#leaderAddress;
      const leader = this.all.find(({ nodeId }) => nodeId === address);
      if (!leader || leader.role !== 'leader' || leader.isPaused) continue;
      if (this.isCut || leader.isCut) continue;
      const { epoch } = leader;
      // Entries are shared objects, so one comparison shows whether the histories agree.
      const from = this.log.at(-1) === leader.log[this.log.length - 1] ? this.log.length : 0;
      const copy = leader.log.slice(from, this.log.length + 1 + world.between([0, 5]));
      await this.#clock.sleep(world.between([1, 50]));
      // What arrives from a leader that this node has left is dropped.
      if (life !== this.#life || this.#leaderAddress !== address || epoch < this.epoch) continue;
      this.epoch = epoch;
      this.log.splice(from, Infinity, ...copy);
      const seq = this.log.length;
      world.clock.after(world.between([1, 50]), () => {
        if (leader.role === 'leader' && leader.epoch === epoch) leader.#acked.set(this.nodeId, seq);
      });
    }
  }
}
