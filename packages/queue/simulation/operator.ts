import type { Simulation } from '@millrace/kit/simulation';
import { attemptRecord } from '../src/core/outcome.js';
import type { NewTask, TaskStore } from '../src/storage/port/task-store.js';
import { sampleTask } from '../src/delivery/delivery.test-support.js';
import { manners, randomConfig } from './queues.js';
import type { Servers } from './servers.js';

const queues = [...manners.keys()];

/** Simulated clients and operators: submit tasks and change queues while they run. */
export class Operator {
  readonly paused = new Set<string>();
  readonly #ids: string[] = [];
  purged = 0;
  redriven = 0;

  constructor(
    private readonly world: Simulation,
    private readonly store: TaskStore,
    private readonly servers: Servers,
  ) {}

  async configure(queue: string): Promise<void> {
    const config = randomConfig(this.world, queue);
    await this.store.putQueue({ queue, config, now: this.world.clock.now(), by: 'admin' });
    this.#notify(queue);
  }

  async configureAll(): Promise<void> {
    for (const queue of queues) await this.configure(queue);
  }

  async submit(): Promise<void> {
    const { world } = this;
    const now = world.clock.now();
    const tasks = Array.from({ length: world.between([1, 8]) }, () => this.#newTask(now));
    await this.store.insertTasks(tasks, now);
    for (const queue of new Set(tasks.map((task) => task.queue))) this.#notify(queue);
  }

  async togglePause(): Promise<void> {
    const queue = this.#pick(queues);
    await this.setPaused(queue, !this.paused.has(queue));
  }

  async setPaused(queue: string, paused: boolean): Promise<void> {
    if (paused) this.paused.add(queue);
    else this.paused.delete(queue);
    await this.store.setPaused({ queue, paused, now: this.world.clock.now(), by: 'operator' });
    this.#notify(queue);
  }

  /** Redrives or purges some of the dead, while others run. */
  async tendDead(): Promise<void> {
    const { world, store } = this;
    const queue = this.#pick(queues);
    const limit = world.between([1, 20]);
    const query = { queue, filter: {}, order: 'oldest_first' as const, limit, maxBytes: 1e9 };
    const { tasks } = await store.deadTasks(query);
    const now = world.clock.now();
    const ids = tasks.map((task) => task.id);
    const change = { queue, ids, diedBy: now, now, by: 'operator', selector: { ids } };
    if (world.chance(0.25)) {
      this.purged += (await store.actOnDead({ action: 'purge', ...change })).ids.length;
    } else {
      const apartMs = world.between([0, 500]);
      const dueAt = (index: number) => now + index * apartMs;
      const redriven = await store.actOnDead({ action: 'redrive', ...change, dueAt });
      this.redriven += redriven.ids.length;
    }
    this.#notify(queue);
  }

  /** Cancels one task in any status, or some of those that wait. */
  async cancel(): Promise<void> {
    const { world, store } = this;
    if (this.#ids.length === 0) return;
    const ids = Array.from({ length: world.between([1, 5]) }, () => this.#pick(this.#recent()));
    const change = { now: world.clock.now(), by: 'operator', message: 'no longer needed' };
    const queue = this.#pick(queues);
    if (world.chance(0.3)) {
      const selector = { ids };
      const cancelled = await store.cancelPending({ ...change, queue, ids, selector });
      this.#notifyCancelled(queue, cancelled.length);
      return;
    }
    const [id = ''] = ids;
    const result = await store.cancelTask({
      ...change,
      id,
      selector: { ids: [id] },
      attempt: (task, now) =>
        attemptRecord(task, { outcome: 'FAILED', now, errorType: 'CANCELLED' }),
    });
    if (result.kind === 'changed') this.#notifyCancelled(result.task.queue, 1);
  }

  /** Young tasks more often have not ended. */
  #recent(): readonly string[] {
    return this.world.chance(0.8) ? this.#ids.slice(-20) : this.#ids;
  }

  #notifyCancelled(queue: string, count: number): void {
    if (count > 0) this.servers.any()?.cancelled(queue, count);
  }

  #newTask(now: number): NewTask {
    const { world } = this;
    const queue = this.#pick(queues);
    // A client without a response sends the same id again.
    const isRepeat = this.#ids.length > 0 && world.chance(0.05);
    const id = isRepeat ? this.#pick(this.#ids) : world.random.ulid(now);
    this.#ids.push(id);
    const groups = queue === 'fifo' ? 4 : 12;
    const delayMs = world.chance(0.2) ? world.between([1, 60_000]) : 0;
    const isDistant = world.chance(0.01);
    return {
      ...sampleTask(id, now),
      queue,
      priority: world.between([0, 9]),
      groupKey: world.chance(0.7) ? `group ${world.between([1, groups])}` : null,
      dueAt: isDistant ? now + 20 * 86_400_000 : now + delayMs,
      expiresAt: world.chance(0.1) ? now + world.between([1, 120_000]) : null,
      ...(world.chance(0.2) && {
        uniqueKey: `key ${world.between([1, 3])}`,
        uniqueUntil: world.chance(0.5) ? null : now + world.between([1, 60_000]),
      }),
    };
  }

  /** Not always: the store's own hint, or the next scan, must be enough. */
  #notify(queue: string): void {
    for (const server of this.servers.all()) {
      if (this.world.chance(0.5)) server.queueChanged(queue);
    }
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[this.world.between([0, choices.length - 1])]!;
  }
}
