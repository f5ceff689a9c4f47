import { silentMetrics } from './silent-metrics.js';
import type { Simulation, SimulatedNode } from '@millrace/kit/simulation';
import type { Outbound } from '@millrace/kit/outbound';
import { Background, History, TaskObserver } from '../src/background/index.js';
import { createDelivery, type Delivery } from '../src/delivery/index.js';
import { StorageUnavailable, type TaskStore } from '../src/storage/port/task-store.js';
import type { Witness } from './witness.js';

interface Server {
  node: SimulatedNode;
  delivery: Delivery;
  background: Background;
  isStopping: boolean;
}

/** So small that a job takes several steps. */
const jobChunkSize = 2;

/** The servers of a run. Each may crash, lose its memory, and restart. */
export class Servers {
  readonly #up = new Map<string, Server>();
  crashes = 0;
  stops = 0;

  constructor(
    private readonly world: Simulation,
    private readonly disk: TaskStore,
    private readonly witness: Pick<Witness, 'view'>,
    private readonly outbound: () => Outbound,
  ) {}

  /** One of those that are up, by chance. */
  any(): Delivery | undefined {
    const up = this.#alive();
    return up[this.world.between([0, Math.max(0, up.length - 1)])]?.delivery;
  }

  all(): Delivery[] {
    return this.#alive().map((server) => server.delivery);
  }

  backgrounds(): Background[] {
    return this.#alive().map((server) => server.background);
  }

  /** Graceful shutdown, in the order of a real server. */
  async shutDown(timeoutMs: number): Promise<void> {
    await Promise.all(this.#alive().map((server) => shutDown(server, timeoutMs)));
  }

  boot(name: string): void {
    const { world } = this;
    const node = world.node(name);
    const { clock, random, log } = node;
    const store = this.#storeOf(node);
    const instance = `${name} ${node.life}`;
    const history = new History({ store, clock, instance });
    const observer = new TaskObserver({ history, clock });
    const outbound = node.guard(this.outbound());
    const delivery = createDelivery({
      store,
      observer,
      clock,
      random,
      log,
      outbound,
      metrics: silentMetrics,
      findSecret: () => undefined,
      isAllowed: () => true,
      nodeId: name,
    });
    const background = new Background({
      store,
      clock,
      log,
      instance,
      history,
      observer,
      jobChunkSize,
    });
    this.#up.set(name, { node, delivery, background, isStopping: false });
    node.start(() => delivery.start());
    background.start();
  }

  /** Crash: everything of the server stops; it restarts after a while. */
  crash(name: string): void {
    const server = this.#up.get(name);
    if (!server?.node.alive) return;
    this.crashes++;
    server.node.crash();
    this.#bootLater(name);
  }

  /** Graceful shutdown: running tasks are handed back. */
  stop(name: string): void {
    const server = this.#up.get(name);
    if (!server?.node.alive || server.isStopping) return;
    server.isStopping = true;
    this.stops++;
    server.node.start(async () => {
      await shutDown(server, this.world.between([0, 10_000]));
      this.world.note('stopped', {}, name);
      server.node.crash();
      this.#bootLater(name);
    });
  }

  /** Restarts servers that failed because of the store. */
  bootFallen(names: readonly string[]): void {
    for (const name of names) {
      const server = this.#up.get(name);
      if (server && !server.node.alive && !this.#coming.has(name)) this.#bootLater(name);
    }
  }

  readonly #coming = new Set<string>();

  #bootLater(name: string): void {
    this.#coming.add(name);
    this.world.clock.after(this.world.between([10, 8_000]), () => {
      this.#coming.delete(name);
      this.boot(name);
    });
  }

  #alive(): Server[] {
    return [...this.#up.values()].filter((server) => server.node.alive && !server.isStopping);
  }

  #storeOf(node: SimulatedNode): TaskStore {
    const guarded = node.guard(this.witness.view(node.clock, node.name), {
      name: 'store',
      latencyMs: [0, 4],
      error: (method) => new StorageUnavailable(`${method} was made to fail`),
    });
    // A hint is no call: it cannot fail, but it can be lost.
    const onWork: TaskStore['onWork'] = (listener) =>
      this.disk.onWork((queue) => {
        if (node.alive && !this.world.fault('hint.lost')) listener(queue);
      });
    const onCancelled: TaskStore['onCancelled'] = (listener) =>
      this.disk.onCancelled((id) => {
        if (node.alive && !this.world.fault('hint.lost')) listener(id);
      });
    const onEnded: TaskStore['onEnded'] = (listener) => this.disk.onEnded(listener);
    const hints: Partial<TaskStore> = { onWork, onCancelled, onEnded };
    return new Proxy(guarded, {
      get: (target, property) =>
        Reflect.get(Object.hasOwn(hints, property) ? hints : target, property) as unknown,
    });
  }
}

async function shutDown({ background, delivery }: Server, timeoutMs: number): Promise<void> {
  await background.stop();
  await delivery.stop({ timeoutMs });
  await background.storeHistory();
}
