import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { TaskStore } from '../storage/port/task-store.js';
import type { History, TaskObserver } from './task-observer.js';
import { Jobs } from './jobs.js';
import { Loop } from './loop.js';
import { Scheduler } from './scheduler.js';

export interface BackgroundOptions {
  store: TaskStore;
  clock: Clock;
  log: Log;
  /** Identifies this run of the server. */
  instance: string;
  history: History;
  observer: TaskObserver;
  /** Tasks of one step of a job. */
  jobChunkSize?: number | undefined;
}

/** The calls that operations make. */
export type BackgroundControl = Pick<Background, 'schedulesChanged' | 'jobsChanged'>;

/** What a server does besides delivery: it runs schedules and jobs, and stores the history. */
export class Background {
  readonly #schedules: Loop;
  readonly #jobs: Loop;
  readonly #history: Loop;

  constructor(private readonly options: BackgroundOptions) {
    const { store, clock, log, instance, history, observer, jobChunkSize: chunkSize } = options;
    const scheduler = new Scheduler({ store, clock, log, observer });
    this.#schedules = new Loop({ name: 'schedules', clock, log, run: () => scheduler.run() });
    const jobs = new Jobs({ store, clock, log, instance, chunkSize });
    this.#history = new Loop({ name: 'history', clock, log, run: () => history.flush() });
    this.#jobs = new Loop({ name: 'jobs', clock, log, run: (signal) => jobs.run(signal) });
  }

  start(): void {
    this.#schedules.start();
    this.#jobs.start();
    this.#history.start();
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

  /** At the end, when nothing more is counted. */
  async storeHistory(): Promise<void> {
    const { history, log } = this.options;
    await this.#history.stop();
    await history.flush({ isLast: true }).catch((error: unknown) => {
      log.warn({ err: error }, 'failed to store the last history');
    });
  }
}
