import { seededRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import { simulateQueue } from '../simulation/index.js';
import { MemoryStore } from './support/memory-store/index.js';
import type {
  DeadChange,
  DeadChangeResult,
  RowBatch,
  RowBatchResult,
} from '../src/storage/port/task-store.js';

/** Makes the tasks of runs, but leaves the schedule as it is and gives each task a new id. */
class ForgetsRuns extends MemoryStore {
  readonly #random = seededRandom(1);

  override async writeRows(batch: RowBatch): Promise<RowBatchResult> {
    if (!isRun(batch)) return super.writeRows(batch);
    const { table, queue, key, ...put } = batch.puts![0]!;
    const [row] = await this.listRows({ table, queue, key });
    const tasks = batch.tasks!.map((task) => ({ ...task, id: this.#random.ulid(batch.now) }));
    const puts = [{ table, queue, key, ...put, value: row!.value }];
    return super.writeRows({ ...batch, puts, tasks });
  }
}

class LosesRuns extends MemoryStore {
  override writeRows(batch: RowBatch): Promise<RowBatchResult> {
    return super.writeRows(isRun(batch) ? { ...batch, tasks: [] } : batch);
  }
}

function isRun({ puts = [], tasks = [] }: RowBatch): boolean {
  if (puts[0]?.table !== 'schedule') return false;
  const { nextRunAt } = puts[0].value as { nextRunAt: number | null };
  return tasks.length > 0 && nextRunAt !== null;
}

class ForgetsTasksOfJobs extends MemoryStore {
  override actOnDead(change: DeadChange): Promise<DeadChangeResult> {
    return super.actOnDead(change.row ? { ...change, ids: change.ids.slice(1) } : change);
  }
}

/** As if a step were repeated after a crash. */
class CountsTwice extends MemoryStore {
  override actOnDead(change: DeadChange): Promise<DeadChangeResult> {
    const { row } = change;
    const twice = row && { ...row, value: (count: number) => row.value(2 * count) };
    return super.actOnDead({ ...change, row: twice });
  }
}

test.each([
  ['an occurrence of a schedule that runs twice', ForgetsRuns, 'an occurrence ran twice'],
  ['an occurrence of a schedule that is lost', LosesRuns, 'an occurrence is lost'],
  ['a job that leaves out tasks', ForgetsTasksOfJobs, 'a job ended without'],
  ['a job that counts tasks twice', CountsTwice, 'a job counts'],
])('simulation: finds %s', { timeout: 300_000 }, async (_name, Store, message) => {
  await expect(simulateQueue(10, { newDisk: () => new Store() })).rejects.toThrow(message);
});
