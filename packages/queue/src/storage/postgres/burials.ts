import { tombstoneMs, type TaskStore } from '../task-store.js';
import type { Connections } from './connections.js';
import { Mark } from './mark.js';
import type { SkippingStatement, Statement } from './statement.js';
import * as bury from './statements/bury.sql.js';
import { forgetClaimants } from './statements/instances.sql.js';

const buriedAtOnce = 1_000;

/** Turns what is over into tombstones when it has had its time, and removes those when they have. */
export class Burials {
  readonly #tombstones: Mark;

  constructor(
    private readonly connections: Connections,
    private readonly monotonic: () => number,
    private readonly skip: (statement: SkippingStatement) => Statement,
  ) {
    this.#tombstones = new Mark(monotonic);
  }

  /** There are tombstones of this time: maybe before the mark, where a clock was set back. */
  buried(at: number): void {
    this.#tombstones.lower(at);
  }

  deleteFinished(ask: Parameters<TaskStore['deleteFinished']>[0]): Promise<number> {
    this.buried(ask.now);
    const values = [ask.queue, ask.endedBefore, ask.now, ask.limit];
    return this.#count(ask.status === 'DEAD' ? bury.deleteDead : bury.deleteSucceeded, values);
  }

  async deleteTombstones({ now, limit }: { now: number; limit: number }): Promise<number> {
    // What killed servers left goes along.
    await this.connections.ask(forgetClaimants);
    const by = now - tombstoneMs;
    const from = this.#tombstones.begin();
    const startedAt = this.monotonic();
    const [row] = await this.connections.ask<{ gone: number; up_to: number | null }>(
      this.skip(bury.deleteTombstones),
      [by, limit, from],
    );
    if (from === 0) this.#tombstones.tookWhole(this.monotonic() - startedAt);
    const { gone, up_to: upTo } = row!;
    this.#tombstones.raise(gone < limit ? by : (upTo ?? 0));
    return gone;
  }

  /** What the finished tasks of deleted queues left behind, also by a process that was killed. */
  async clearWrecks(): Promise<void> {
    const found = await this.connections.ask<{ queue_no: number; deleted_at: number }>(bury.wrecks);
    for (const wreck of found) await this.clearWreck(wreck.queue_no, wreck.deleted_at);
  }

  async clearWreck(queueNo: number, deletedAt: number): Promise<void> {
    this.buried(deletedAt);
    const values = [queueNo, deletedAt, buriedAtOnce];
    for (const clear of [bury.clearSucceeded, bury.clearDead]) {
      while ((await this.#count(clear, values)) === buriedAtOnce) continue;
    }
    await this.connections.ask(bury.removeWreck, [queueNo]);
  }

  async #count(statement: SkippingStatement, values: readonly unknown[]): Promise<number> {
    const [row] = await this.connections.ask<{ gone: number }>(this.skip(statement), values);
    return row!.gone;
  }
}
