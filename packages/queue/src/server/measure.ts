import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Metrics } from '@millrace/kit/metrics';
import type { Clock } from '@millrace/kit/clock';
import { waitKinds } from '../core/flow.js';
import type { TaskStore } from '../storage/port/task-store.js';
import type { Load } from '../operations/base/limits.js';

export interface MeasureOptions {
  metrics: Metrics;
  store: TaskStore;
  load: Load;
  clock: Clock;
  log: Log;
}

/** Metrics of queues; their counts are read from the store at each scrape. */
export function measuredQueues({ metrics, store, load, clock, log }: MeasureOptions): Metrics {
  measureLoad(metrics, load);
  const tasks = metrics.gauge({
    name: 'tasks',
    help: 'Tasks by queue and state: pending, delayed (pending, not due yet), in_flight, dead.',
    labelNames: ['queue', 'state'],
  });
  const oldest = metrics.gauge({
    name: 'oldest_pending_age_seconds',
    help: 'Time since the oldest pending task of the queue became due; 0 if none is due.',
    labelNames: ['queue'],
  });
  const suspended = metrics.gauge({
    name: 'suspended_tasks',
    help: 'Pending tasks of flows by what they wait for: dependencies, timer, signal, tasks.',
    labelNames: ['queue', 'kind'],
  });
  const paused = metrics.gauge({
    name: 'queue_paused',
    help: '1 while the queue is paused.',
    labelNames: ['queue'],
  });
  const storeUp = metrics.gauge({
    name: 'storage_up',
    help: '1 if the last read of counts from the store succeeded.',
  });
  const readCounts = async () => {
    const queues = await store.listQueues();
    const now = clock.now();
    const counts = await Promise.all(queues.map(({ name }) => store.counts(name, now)));
    // Drops the series of deleted queues.
    for (const gauge of [tasks, oldest, suspended, paused]) gauge.reset();
    queues.forEach(({ name: queue, paused: isPaused }, index) => {
      const { pending, delayed, inFlight, dead, oldestDueAt, waits } = counts[index]!;
      for (const kind of waitKinds) suspended.set({ queue, kind }, waits[kind] ?? 0);
      tasks.set({ queue, state: 'pending' }, pending);
      tasks.set({ queue, state: 'delayed' }, delayed);
      tasks.set({ queue, state: 'in_flight' }, inFlight);
      tasks.set({ queue, state: 'dead' }, dead);
      const ageMs = oldestDueAt === null ? 0 : Math.max(0, now - oldestDueAt);
      oldest.set({ queue }, ageMs / 1000);
      paused.set({ queue }, isPaused ? 1 : 0);
    });
  };
  return {
    ...metrics,
    text: async () => {
      try {
        await readCounts();
        storeUp.set(1);
      } catch (error) {
        // The other metrics are still served: they help to find the cause.
        storeUp.set(0);
        log.warn({ err: error }, `the counts could not be read: ${messageOf(error)}`);
      }
      return metrics.text();
    },
  };
}

function measureLoad(metrics: Metrics, load: Load): void {
  metrics.gauge({
    name: 'load_share',
    help: 'Admitted share of new work; below 1 the server sheds load.',
    read: () => load.share,
  });
  const shed = metrics.counter({
    name: 'requests_shed_total',
    help: 'Requests refused to shed load, by cause.',
    labelNames: ['cause'],
  });
  load.onShed = (cause) => shed.inc({ cause });
}
