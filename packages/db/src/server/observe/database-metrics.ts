import type { Core } from '@millrace/engine/core/core';
import { statSync } from 'node:fs';
import type { Metrics } from '@millrace/kit/metrics';
import type { Database } from '@millrace/engine/api/database';
import type { Admission } from '../limits/admission.js';

interface WriterObserver {
  /** A write waited this long for the writer. */
  waited(delayMs: number): void;
  /** A batch of commits took this long to reach the disk. */
  flushed(durationMs: number): void;
}

/** Measures the writer's queue delay and commit latency by wrapping the commit function. */
function meterWriter(core: Core, observer: WriterObserver): void {
  core.writer.onWaited = observer.waited;
  const { store, clock } = core;
  const commit = store.commit.bind(store);
  store.commit = async (...args) => {
    const startedAt = clock.monotonic();
    await commit(...args);
    observer.flushed(clock.monotonic() - startedAt);
  };
}

const delayBuckets = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1];
const flushBuckets = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2];
const sizeBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** Measures the current database; a follower that takes a new copy attaches another. */
interface DatabaseMeter {
  attach(database: Database): void;
  stop(): void;
}

/** Registers the engine's metrics. */
export function measureDatabase(
  metrics: Metrics,
  database: Database,
  admission: Admission,
): DatabaseMeter {
  let current: Database | undefined;
  const wait = metrics.histogram({
    name: 'queue_delay_seconds',
    help: 'Time a write waited for the writer.',
    buckets: delayBuckets,
  });
  const flush = metrics.histogram({
    name: 'fsync_duration_seconds',
    help: 'Time a batch of commits took to reach the disk.',
    buckets: flushBuckets,
  });
  const [waits, flushes] = [wait.of({}), flush.of({})];
  const observer = {
    waited: (delayMs: number) => {
      waits.observe(delayMs / 1000);
      admission.waited(delayMs);
    },
    flushed: (durationMs: number) => flushes.observe(durationMs / 1000),
  };
  const count = commitCounter(metrics);
  const violations = metrics.counter({
    name: 'schema_violations_total',
    help: 'Writes that did not match the schema of their collection, by validate mode.',
    labelNames: ['validate'],
  });
  let stop = () => undefined as unknown;
  const attach = (next: Database) => {
    if (next === current) return;
    stop();
    current = next;
    meterWriter(next.core, observer);
    next.core.turns.onWait = (kind, waitedMs) => admission.queryWaited(kind, waitedMs);
    next.core.onSchemaViolation = (validate) => violations.inc({ validate });
    stop = count(next);
  };
  attach(database);
  describeState(metrics, () => current ?? database);
  describeAdmission(metrics, admission);
  return { attach, stop: () => stop() };
}

function commitCounter(metrics: Metrics): (database: Database) => () => void {
  const commits = metrics.counter({ name: 'commits_total', help: 'Commits since the start.' });
  const sizes = metrics.histogram({
    name: 'commit_batch_size',
    help: 'Commits per fsync.',
    buckets: sizeBuckets,
  });
  return ({ core }) => {
    let counted = core.durable.seq;
    return core.onDurable(() => {
      const fresh = core.durable.seq - counted;
      counted = core.durable.seq;
      if (fresh <= 0) return;
      commits.inc({}, fresh);
      sizes.observe({}, fresh);
    });
  };
}

function describeState(metrics: Metrics, current: () => Database): void {
  const gauge = (name: string, help: string, read: (core: Core, database: Database) => number) =>
    metrics.gauge({ name, help, read: () => read(current().core, current()) });
  gauge('seq', 'Last commit on disk.', (core) => core.durable.seq);
  gauge('oldest_seq', 'Oldest commit a watch can start at.', (core) => core.durable.oldestSeq);
  gauge('epoch', 'Epoch, which each promotion increments.', (core) => core.durable.epoch);
  gauge('log_bytes', 'Size of the change log.', (core) => core.store.log?.bytes ?? 0);
  gauge('log_lag_commits', 'Lag of the slowest watch, in commits.', (core, database) => {
    const oldest = database.watches.oldestSeq;
    return oldest === undefined ? 0 : Math.max(0, core.durable.seq - oldest);
  });
  gauge('readers', 'Open snapshots.', (core) => core.snapshots.size);
  gauge('oldest_reader_commits', 'Age of the oldest open snapshot, in commits.', (core) => {
    let oldest = core.durable.seq;
    for (const { seq } of core.snapshots) oldest = Math.min(oldest, seq);
    return core.durable.seq - oldest;
  });
  gauge('transactions', 'Open transactions.', (_core, database) => database.transactions.size);
  gauge('writer_backlog', 'Writes waiting for the writer.', (core) => core.writer.backlog);
  gauge('file_bytes', 'Size of the data file.', (core) => fileBytes(core));
  gauge('overlay_bytes', 'Size of the commits that are not in the data file yet.', (core) => {
    return core.store.overlay.bytes;
  });
  gauge(
    'archive_lag_commits',
    'Commits that are not in the log archive yet.',
    (_core, database) => database.archiveLag,
  );
  gauge('log_pinned_commits', 'Commits retained for followers and backups.', (core) =>
    Math.max(0, core.durable.seq + 1 - core.pinnedSeq),
  );
  gauge(
    'storage_failed',
    '1 after a failed write or sync of the log; restart to recover.',
    (core) => (core.writer.failure ? 1 : 0),
  );
  gauge('durability_relaxed', '1 if writes are acknowledged before they are on disk.', (core) =>
    core.options.durability === 'relaxed' ? 1 : 0,
  );
}

/** 0 while the file is being replaced. */
function fileBytes({ tables }: Core): number {
  return statSync(tables.path, { throwIfNoEntry: false })?.size ?? 0;
}

function describeAdmission(metrics: Metrics, admission: Admission): void {
  const gauge = (name: string, help: string, read: () => number) =>
    metrics.gauge({ name, help, read });
  gauge('calls_in_flight', 'Calls in flight, without watches.', () => admission.inflight);
  gauge('watches', 'Open watches.', () => admission.watches);
  gauge('admitted_share', 'Share of calls admitted; below 1 load is shed.', () => admission.share);
  gauge('loop_turn_seconds', 'Duration of the last event loop turn that handled a call.', () => {
    return admission.turnMs / 1000;
  });
  const shed = metrics.counter({
    name: 'shed_calls_total',
    help: 'Shed calls by cause.',
    labelNames: ['cause'],
  });
  admission.onShed = (cause) => shed.inc({ cause });
}
