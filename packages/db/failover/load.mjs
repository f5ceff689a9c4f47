import { setTimeout as sleep } from 'node:timers/promises';

/** Refusals after which a write was certainly not applied. */
const notApplied = new Set(['READ_ONLY_REPLICA', 'FENCED', 'NOT_READY']);
const keyCount = 5;

/**
 * Clients that write and read while faults happen. Registers are written through single nodes
 * without retries, so that a failed write is one attempt with an unknown result. Inserts and
 * updates use a client that knows all nodes and repeats calls, as applications do.
 */
export class Load {
  operations = [];
  inserted = [];
  /** Updates of one record each, by one client each. */
  counters = [0, 1].map((i) => ({ key: `c${i}`, acknowledged: 0, unknown: 0 }));
  /** Times of acknowledged register writes, for availability. */
  ackTimes = [];
  #isOver = false;
  #running = [];
  #value = 0;

  constructor(nodes, cluster, random) {
    Object.assign(this, { nodes, cluster, random });
  }

  async start() {
    for (const { key } of this.counters) {
      await this.cluster.collection('counters').insertWithKey(key, { value: 0 });
    }
    for (let i = 0; i < 3; i++) this.#running.push(this.#registers(i));
    for (let i = 0; i < 2; i++) this.#running.push(this.#inserts());
    for (const counter of this.counters) this.#running.push(this.#updates(counter));
  }

  async stop() {
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  async #registers(worker) {
    let target = worker % this.nodes.length;
    while (!this.#isOver) {
      const key = `k${Math.floor(this.random() * keyCount)}`;
      const isRead = this.random() < 0.4;
      const node = this.nodes[target];
      const leads = isRead ? await this.#read(node, key) : await this.#write(node, key);
      if (!leads) {
        target = (target + 1) % this.nodes.length;
        await sleep(20);
      }
      await sleep(5);
    }
  }

  async #write(node, key) {
    const value = ++this.#value;
    const start = performance.now();
    const entry = { key, kind: 'write', value, start, end: Infinity };
    try {
      await node.client.collection('registers').upsert(key, { value });
      entry.end = performance.now();
      this.ackTimes.push(entry.end);
      this.operations.push(entry);
      return true;
    } catch (error) {
      if (!notApplied.has(error.code)) this.operations.push(entry);
      return false;
    }
  }

  /**
   * A linearizable read: the value counts only if the node still leads afterwards and followers
   * have everything that it may have shown.
   */
  async #read(node, key) {
    const start = performance.now();
    try {
      const before = await node.client.status();
      if (before.state !== 'leading') return false;
      const record = await node.client.collection('registers').findByKey(key);
      const needed = Math.max(before.durableSeq, record?.seq ?? 0);
      for (let tries = 0; tries < 20; tries++) {
        const after = await node.client.status();
        if (after.state !== 'leading' || after.epoch !== before.epoch) return false;
        const members = new Set(after.cluster.members.map(({ nodeId }) => nodeId));
        const has = ({ followerId, ackedSeq }) => members.has(followerId) && ackedSeq >= needed;
        if (after.followers.filter(has).length >= after.minAcks) {
          const value = record?.data.value;
          this.operations.push({ key, kind: 'read', value, start, end: performance.now() });
          return true;
        }
        await sleep(20);
      }
      return false;
    } catch {
      return false;
    }
  }

  async #updates(counter) {
    const counters = this.cluster.collection('counters');
    while (!this.#isOver) {
      try {
        await counters.updateByKey(counter.key, { value: ++this.#value });
        counter.acknowledged++;
      } catch {
        counter.unknown++;
        await sleep(50);
      }
      await sleep(10);
    }
  }

  async #inserts() {
    const inserts = this.cluster.collection('inserts');
    while (!this.#isOver) {
      const value = ++this.#value;
      try {
        await inserts.insert({ value });
        this.inserted.push(value);
      } catch {
        // The result is unknown, so it is not counted as acknowledged.
        await sleep(50);
      }
      await sleep(10);
    }
  }
}
