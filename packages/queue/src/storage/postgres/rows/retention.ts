import { tombstoneMs, type TaskStore } from '../../port/task-store.js';
import type { Connections } from '../connection/connections.js';
import { LowWaterMark } from './low-water-mark.js';
import type { SkippingStatement, Statement } from '../connection/statement.js';
import { forgetClaimants } from '../statements/instances.sql.js';
import * as statements from '../statements/retention.sql.js';
import { deleteEndedKeys } from '../statements/unique-keys.sql.js';

const batchSize = 1_000;

/** Replaces finished tasks by tombstones when their retention ends, and deletes old tombstones. */
export class Retention {
  readonly #tombstones: LowWaterMark;

  constructor(
    private readonly connections: Connections,
    private readonly monotonic: () => number,
    private readonly skip: (statement: SkippingStatement) => Statement,
  ) {
    this.#tombstones = new LowWaterMark(monotonic);
  }

  /** There are tombstones of this time. It is below the mark if a clock was set back. */
  purgedAt(time: number): void {
    this.#tombstones.lower(time);
  }

  deleteFinished(request: Parameters<TaskStore['deleteFinished']>[0]): Promise<number> {
    this.purgedAt(request.now);
    const { deleteDead, deleteSucceeded } = statements;
    const values = [request.queue, request.endedBefore, request.now, request.limit];
    return this.#count(request.status === 'DEAD' ? deleteDead : deleteSucceeded, values);
  }

  async deleteTombstones({ now, limit }: { now: number; limit: number }): Promise<number> {
    // Rows of killed servers are deleted here too.
    await this.connections.query(forgetClaimants);
    await this.connections.query(deleteEndedKeys, [now, limit]);
    const by = now - tombstoneMs;
    const from = this.#tombstones.begin();
    const startedAt = this.monotonic();
    const [row] = await this.connections.query<{ gone: number; up_to: number | null }>(
      this.skip(statements.deleteTombstones),
      [by, limit, from],
    );
    if (from === 0) this.#tombstones.tookWhole(this.monotonic() - startedAt);
    const { gone, up_to: upTo } = row!;
    this.#tombstones.raise(gone < limit ? by : (upTo ?? 0));
    return gone;
  }

  /** Deletes the finished tasks of deleted queues, also of those that a killed server deleted. */
  async clearDeletedQueues(): Promise<void> {
    const found = await this.connections.query<{ queue_no: number; deleted_at: number }>(
      statements.deletedQueues,
    );
    for (const queue of found) await this.clearDeletedQueue(queue.queue_no, queue.deleted_at);
  }

  async clearDeletedQueue(queueNo: number, deletedAt: number): Promise<void> {
    this.purgedAt(deletedAt);
    const values = [queueNo, deletedAt, batchSize];
    for (const statement of statements.deleteOfDeletedQueue) {
      while ((await this.#count(statement, values)) === batchSize) continue;
    }
    await this.connections.query(statements.removeDeletedQueue, [queueNo]);
  }

  async #count(statement: SkippingStatement, values: readonly unknown[]): Promise<number> {
    const [row] = await this.connections.query<{ gone: number }>(this.skip(statement), values);
    return row!.gone;
  }
}
