import { existsSync, renameSync } from 'node:fs';
import { open, type Database, type RowReader } from '@millrace/engine';
import { UsageError } from '@millrace/kit/errors';
import { makePrivateDirectory } from '@millrace/kit/private-files';
import type { AuditRecord } from '../../core/audit.js';
import {
  embeddedPartIn,
  embeddedStoreIn,
  openEmbeddedStore,
  type EmbeddedStoreOptions,
} from './open.js';
import { auditKey, idKey, idOf, kinds, nameKey, queueKey, timeKey } from './keys.js';
import { encodeJson, readCounters, toQueue, queues as readQueues } from './queue-state.js';
import { listRows, storeRow } from './queue-acts.js';
import { RecentTasks, Step } from './step.js';
import {
  decodeTask,
  encodeFixed,
  encodeTombstone,
  isTombstone,
  maxInlineBytes,
  showFull,
  type StoredTask,
} from './task-codec.js';
import { allFlowRows, writeFlowRows } from './flow-rows.js';
import { holdKey } from './indexes.js';
import {
  holdsKey,
  isMovedTask,
  movedRow,
  movedTables,
  type Mark,
  type Moved,
  type MovedQueue,
  type MovedTask,
  type Source,
  type Target,
} from '../transfer/moved.js';

const markKey = nameKey(kinds.meta, 'transfer');
const noBytes = Buffer.alloc(0);

/** Opens the embedded store of a data directory as a source. No server may have it open. */
export async function openEmbeddedSource(
  dataDirectory: string,
  options: EmbeddedStoreOptions,
): Promise<Source> {
  const directory = embeddedStoreIn(dataDirectory);
  if (!existsSync(directory)) {
    throw new UsageError(
      `${dataDirectory} has no queue store. Set --data to the data directory of its server.`,
    );
  }
  return openEnd(directory, directory, options);
}

/** Opens a target in a temporary directory, renamed at the end, so that no server opens a part. */
export async function openEmbeddedTarget(
  dataDirectory: string,
  options: EmbeddedStoreOptions,
): Promise<Target> {
  const directory = embeddedStoreIn(dataDirectory);
  if (existsSync(directory)) {
    throw new UsageError(`${directory} exists already. Choose another --data, or move it away.`);
  }
  makePrivateDirectory(dataDirectory);
  return openEnd(embeddedPartIn(dataDirectory), directory, options);
}

async function openEnd(
  directory: string,
  place: string,
  options: EmbeddedStoreOptions,
): Promise<EmbeddedEnd> {
  // Checks or writes the format, and finishes interrupted deletions.
  await (await openEmbeddedStore(directory, options)).close();
  return new EmbeddedEnd(await open(directory, options), directory, place, options.clock.now());
}

class EmbeddedEnd implements Target {
  readonly #recent = new RecentTasks();
  #isClosed = false;

  constructor(
    private readonly database: Database,
    private readonly directory: string,
    private readonly place: string,
    private readonly now: number,
  ) {}

  async queues(): Promise<MovedQueue[]> {
    return this.database.readRows((rows) =>
      readQueues(rows).map((stored) => {
        const { turns, starts } = readCounters(rows, stored.number);
        return {
          queue: { ...toQueue(stored), config: stored.config },
          turns,
          starts,
          rows: movedTables.flatMap((table) =>
            listRows(rows, { table, queue: stored.name, hasBodies: true }),
          ),
        };
      }),
    );
  }

  async tasks(afterId: string, limit: number): Promise<Moved[]> {
    // The first key after that of the id.
    const start =
      afterId === ''
        ? Buffer.of(kinds.task)
        : Buffer.concat([idKey(kinds.task, afterId), Buffer.of(0)]);
    return this.database.readRows((rows) => {
      const range = { start, end: Buffer.of(kinds.task + 1), limit };
      return Array.from(rows.range(range), ({ key, value }) => toMoved(rows, idOf(key), value));
    });
  }

  async audit(afterSeq: number, limit: number): Promise<AuditRecord[]> {
    const range = { start: auditKey(afterSeq + 1), end: Buffer.of(kinds.audit + 1), limit };
    return this.database.readRows((rows) =>
      Array.from(rows.range(range), ({ value }) => JSON.parse(value.toString()) as AuditRecord),
    );
  }

  async size(): Promise<number> {
    return this.database.readRows((rows) => {
      let total = 0;
      for (const { number } of readQueues(rows)) {
        const { pending, inFlight, dead } = readCounters(rows, number);
        total += pending + inFlight + dead;
      }
      return total;
    });
  }

  async mark(): Promise<Mark | undefined> {
    const bytes = this.database.readRows((rows) => rows.get(markKey));
    return bytes && (JSON.parse(bytes.toString()) as Mark);
  }

  async isEmpty(): Promise<boolean> {
    return (await this.queues()).length === 0 && (await this.tasks('', 1)).length === 0;
  }

  async putQueues(queues: readonly MovedQueue[], mark: Mark): Promise<void> {
    await this.#write(mark, (step) => {
      queues.forEach(({ queue, turns, starts, rows }, i) => {
        const number = i + 1;
        step.rows.put(nameKey(kinds.queue, queue.name), encodeJson({ ...queue, number }));
        const counters = readCounters(step.rows, number);
        step.rows.put(queueKey(kinds.counters, number), encodeJson({ ...counters, turns, starts }));
        for (const row of rows) storeRow(step, row);
      });
      // The next queue gets the next number.
      step.rows.put(nameKey(kinds.meta, 'queues'), Buffer.from(String(queues.length)));
    });
  }

  async putTasks(tasks: readonly Moved[], mark: Mark): Promise<void> {
    await this.#write(mark, (step) => {
      for (const moved of tasks) {
        if (isMovedTask(moved)) putTask(step, moved, this.now);
        else {
          step.rows.put(idKey(kinds.task, moved.id), encodeTombstone(moved));
          step.rows.put(timeKey(kinds.tombstone, moved.purgedAt, moved.id), noBytes);
        }
      }
    });
  }

  async putAudit(records: readonly AuditRecord[], mark: Mark): Promise<void> {
    await this.#write(mark, (step) => {
      for (const record of records) step.rows.put(auditKey(record.seq), encodeJson(record));
      const { seq, hash } = records.at(-1)!;
      step.rows.put(nameKey(kinds.meta, 'audit'), encodeJson({ seq, hash }));
    });
  }

  async finish(): Promise<void> {
    await this.database.transact(({ rows }) => rows.remove(markKey));
    await this.close();
    renameSync(this.directory, this.place);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.database.close();
  }

  async #write(mark: Mark, write: (step: Step) => void): Promise<void> {
    await this.database.transact((target) => {
      const step = new Step(target.rows, this.#recent);
      write(step);
      step.rows.put(markKey, encodeJson(mark));
      step.finish();
    });
  }
}

function toMoved(rows: RowReader, id: string, bytes: Buffer): Moved {
  // Copied: the bytes may be in memory of the database.
  const task = decodeTask(id, Buffer.from(bytes));
  if (isTombstone(task)) return task;
  const { payload, attempts, result } = showFull(rows, task);
  const moved = { row: movedRow(task.row), payload: Buffer.from(payload), attempts, result };
  const { flow } = task.row;
  return flow ? { ...moved, flowRows: allFlowRows(rows, id, flow) } : moved;
}

function putTask(step: Step, moved: MovedTask, now: number): void {
  const { row, payload, attempts, result, flowRows = [] } = moved;
  const { number } = step.queue(row.queue)!.stored;
  const isApart = payload.length > maxInlineBytes;
  const fixed = { ...row, payload, dueAt: 0, maxPending: 0, flow: undefined };
  writeFlowRows(step.rows, { puts: flowRows, removals: [] });
  const task: StoredTask = {
    row,
    queueNumber: number,
    attemptsApart: 0,
    lastAttempt: null,
    leaseList: '',
    hasResult: result !== null,
    payload: isApart ? undefined : payload,
    fixed: encodeFixed(fixed, number, row.createdAt),
  };
  if (isApart) step.rows.put(idKey(kinds.payload, row.id), Buffer.from(payload));
  if (result !== null) step.rows.put(idKey(kinds.result, row.id), Buffer.from(result));
  for (const attempt of attempts) step.addAttempt(task, attempt);
  if (row.status === 'PENDING') step.enter(task, now);
  else if (row.status === 'IN_FLIGHT') step.lease(task);
  else if (row.status === 'SUCCEEDED') step.succeeded(task);
  else step.died(task);
  step.store(task);
  step.list(task);
  if (holdsKey(row, now)) holdKey(step.rows, number, row);
}
