import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { TaskStore } from '../storage/task-store.js';
import { Loop } from './loop.js';
import { Scheduler } from './scheduler.js';

export interface BackgroundOptions {
  store: TaskStore;
  clock: Clock;
  log: Log;
}

/** The calls that operations make. */
export type BackgroundControl = Pick<Background, 'schedulesChanged'>;

/** What a server does besides delivery: it runs schedules. */
export class Background {
  readonly #schedules: Loop;

  constructor({ store, clock, log }: BackgroundOptions) {
    const scheduler = new Scheduler({ store, clock, log });
    this.#schedules = new Loop({ name: 'schedules', clock, log, run: () => scheduler.run() });
  }

  start(): void {
    this.#schedules.start();
  }

  schedulesChanged(): void {
    this.#schedules.wake();
  }

  async stop(): Promise<void> {
    await this.#schedules.stop();
  }
}
