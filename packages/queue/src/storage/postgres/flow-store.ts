import { runLater } from '../port/flow-program.js';
import type {
  AnyProgram,
  FlowRow,
  FlowRowQuery,
  FlowStore,
  TaskWithResult,
} from '../port/flow-store.js';
import { ListeningStore } from '../port/store-parts.js';
import type { Connections } from './connections.js';
import type { Counters } from './counters.js';
import { keyHolder } from './flow.sql.js';
import { FlowEffects, flowIo, notifyWaiters, readRows } from './flows.js';
import type { Statement } from './statement.js';
import * as columns from './tasks.js';

export interface FlowParts {
  connections: Connections;
  counters: Counters;
  takeEnds: Statement;
  /** Tasks of a queue changed: counts and listeners must know. */
  changed: (queue: string) => void;
  notePending: (expiresAt: number) => void;
}

export abstract class PostgresFlows extends ListeningStore implements FlowStore {
  protected abstract readonly flowParts: FlowParts;
  #waking: Promise<unknown> = Promise.resolve();

  async runFlow<Result>(start: () => AnyProgram<Result>, now: number): Promise<Result> {
    const counters = this.flowParts.counters;
    let effects = new FlowEffects();
    const result = await this.flowParts.connections.transact((transaction) => {
      effects = new FlowEffects();
      return runLater(start(), flowIo({ transaction, counters, now, effects }));
    });
    this.#flowChanged(effects);
    if (effects.dead.size > 0) await this.wake(now);
    return result;
  }

  readFlowRows(query: FlowRowQuery): Promise<FlowRow[]> {
    return readRows(this.flowParts.connections, query);
  }

  async readTasks(ids: readonly string[]): Promise<TaskWithResult[]> {
    if (ids.length === 0) return [];
    const rows = await this.flowParts.connections.query<
      columns.FoundColumns & { result: string | null }
    >(columns.findResults, [ids]);
    const found = new Map(rows.map((row) => [row.id, row]));
    return ids.flatMap((id) => {
      const row = found.get(id);
      return row && row.status !== null ? [{ ...columns.toTask(row), result: row.result }] : [];
    });
  }

  async holderOf(queue: string, uniqueKey: string, now: number): Promise<string | undefined> {
    const values = [queue, columns.withoutZeros(uniqueKey), now];
    const [row] = await this.flowParts.connections.query<{ id: string }>(keyHolder, values);
    return row?.id;
  }

  /** Notifies waiting tasks of ends; after a crash, also of those that a killed server left. */
  wake(now: number): Promise<number> {
    // One after the other: a call resolves when its ends were handled, also those that an earlier
    // call took.
    const mine = this.#waking.then(() => this.#wake(now));
    this.#waking = mine.catch(() => undefined);
    return mine;
  }

  async #wake(now: number): Promise<number> {
    const effects = new FlowEffects();
    const takeEnds = this.flowParts.takeEnds;
    const counters = this.flowParts.counters;
    try {
      return await notifyWaiters(this.flowParts.connections, { counters, now, effects, takeEnds });
    } finally {
      this.#flowChanged(effects);
    }
  }

  #flowChanged({ queues, dead, expiries }: FlowEffects): void {
    for (const expiresAt of expiries) this.flowParts.notePending(expiresAt);
    for (const queue of queues) this.flowParts.changed(queue);
    for (const id of dead) this.notifyEnded({ id, status: 'DEAD' });
  }
}
