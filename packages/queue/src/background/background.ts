import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import type { TaskStore } from '../storage/task-store.js';
import { Jobs } from './jobs.js';
import { Loop } from './loop.js';
import { Scheduler } from './scheduler.js';

export interface BackgroundOptions {
  store: TaskStore;
  clock: Clock;
  log: Log;
  random: Random;
}

/** The calls that operations make. */
export type BackgroundControl = Pick<Background, 'schedulesChanged' | 'jobsChanged'>;

/** What a server does besides delivery: it runs schedules and jobs. */
export class Background {
  readonly #schedules: Loop;
  readonly #jobs: Loop;

  constructor({ store, clock, log, random }: BackgroundOptions) {
    const scheduler = new Scheduler({ store, clock, log });
    this.#schedules = new Loop({ name: 'schedules', clock, log, run: () => scheduler.run() });
    const jobs = new Jobs({ store, clock, log, instance: random.ulid(clock.now()) });
    this.#jobs = new Loop({ name: 'jobs', clock, log, run: (signal) => jobs.run(signal) });
  }

  start(): void {
    this.#schedules.start();
    this.#jobs.start();
  }

  schedulesChanged(): void {
    this.#schedules.wake();
  }

  jobsChanged(): void {
    this.#jobs.wake();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#schedules.stop(), this.#jobs.stop()]);
  }
}
