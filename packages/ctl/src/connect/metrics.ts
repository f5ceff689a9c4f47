import { queueCodes } from '@millrace/contract/queue';
import { addressOf } from '@millrace/kit/config';
import type { Clock } from '@millrace/kit/clock';
import { listen, metricsApp } from '@millrace/kit/http';
import { createMetrics } from '@millrace/kit/metrics';
import { PeerMemory, peerMemoryLimits } from '@millrace/kit/peer-memory';
import type { World } from '@millrace/kit/world';

/** Prometheus metrics of the connectors; each has the label `connector`. */
export class ConnectorMetrics {
  readonly #metrics = createMetrics('connect');
  /** Commit times of the oldest changes that are not in the queue yet. */
  readonly #oldest = new Map<string, number | undefined>();
  readonly #tasks;
  readonly #errors;
  readonly #behind;

  constructor(clock: Clock) {
    const labelNames = ['connector'] as const;
    this.#tasks = this.#metrics.counter({
      name: 'tasks_total',
      help: 'Tasks that the queue has stored, repeated submits included.',
      labelNames,
    });
    this.#errors = this.#metrics.counter({
      name: 'errors_total',
      help: 'Failed attempts to read changes or to submit tasks.',
      labelNames,
    });
    this.#behind = this.#metrics.gauge({
      name: 'lag_commits',
      help: 'Commits of the database after the last one that was processed.',
      labelNames,
    });
    const oldest = this.#oldest;
    const lag = this.#metrics.gauge({
      name: 'lag_seconds',
      help: 'Age of the oldest change that is not in the queue; 0 without one.',
      labelNames,
    });
    // Read at scrape time: it grows while nothing happens.
    Object.assign(lag, {
      collect: () => {
        for (const [connector, at] of oldest) {
          lag.set({ connector }, at === undefined ? 0 : Math.max(0, clock.now() - at) / 1000);
        }
      },
    });
  }

  addTasks(connector: string, count: number): void {
    this.#tasks.inc({ connector }, count);
  }

  addError(connector: string): void {
    this.#errors.inc({ connector });
  }

  setBehind(connector: string, commits: number): void {
    this.#behind.set({ connector }, commits);
  }

  setOldest(connector: string, committedAt: number | undefined): void {
    this.#oldest.set(connector, committedAt);
  }

  /** Serves /metrics; on loopback, requests of web pages of other sites are refused. */
  async serve(address: string, world: World) {
    const { host } = addressOf(address);
    const peerMemory = new PeerMemory(peerMemoryLimits());
    const app = metricsApp(this.#metrics, { world, codes: queueCodes, host, peerMemory });
    return listen(app, address, { flag: '--metrics-listen' });
  }

  close(): void {
    this.#metrics.close();
  }
}
