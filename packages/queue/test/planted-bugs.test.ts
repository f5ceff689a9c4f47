import { seededRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import { simulateFlows, simulateQueue } from '../simulation/index.js';
import { MemoryStore } from './support/memory-store/index.js';
import type { FlowRow, FlowRowQuery } from '../src/storage/port/flow-store.js';
import type {
  DeadChange,
  DeadChangeResult,
  InsertResult,
  NewTask,
  RowBatch,
  RowBatchResult,
  Settlement,
  SettleResult,
  StepRecords,
  StepResult,
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

class RecordsStepsAgain extends MemoryStore {
  override async recordSteps(request: StepRecords): Promise<StepResult> {
    const result = await super.recordSteps(request);
    if (result.kind !== 'done') return result;
    return { kind: 'done', steps: result.steps.map((step) => ({ ...step, isRecorded: true })) };
  }

  /** A run that does not see what an earlier one recorded. */
  override async readFlowRows(query: FlowRowQuery): Promise<FlowRow[]> {
    return (await super.readFlowRows(query)).filter(({ key }) => key !== 's0');
  }
}

class LosesSignals extends MemoryStore {
  override async readFlowRows(query: FlowRowQuery): Promise<FlowRow[]> {
    const rows = await super.readFlowRows(query);
    return rows.filter(({ kind }, at) => kind !== 'signal' || at % 3 !== 2);
  }
}

/** The signal stays unread after the step that read it. */
class KeepsSignals extends MemoryStore {
  override recordSteps(request: StepRecords): Promise<StepResult> {
    const steps = request.steps.map((step) => ({ ...step, consumes: [] }));
    return super.recordSteps({ ...request, steps });
  }
}

class Oversleeps extends MemoryStore {
  override settle(settlements: readonly Settlement[]): Promise<SettleResult[]> {
    return super.settle(
      settlements.map(({ suspension, ...settlement }) => {
        const until = suspension?.until === undefined ? undefined : suspension.until + 1e9;
        return suspension ? { ...settlement, suspension: { ...suspension, until } } : settlement;
      }),
    );
  }
}

class ForgetsDependencies extends MemoryStore {
  override insertTasks(tasks: readonly NewTask[], now: number): Promise<InsertResult[]> {
    return super.insertTasks(
      tasks.map(({ flow: _flow, ...task }) => task),
      now,
    );
  }
}

test.each([
  ['a step that is recorded twice', RecordsStepsAgain, 'a step was recorded twice'],
  ['a signal that is lost', LosesSignals, 'a signal is lost'],
  ['a signal that is consumed twice', KeepsSignals, 'a signal was consumed twice'],
  ['a wake-up that is lost', Oversleeps, 'a wake-up is lost'],
  ['a dependent that starts early', ForgetsDependencies, 'a dependent started while'],
])('simulation: finds %s', { timeout: 300_000 }, async (_name, Store, message) => {
  await expect(simulateFlows(10, { newDisk: () => new Store() })).rejects.toThrow(message);
});

test.each([
  ['an occurrence of a schedule that runs twice', ForgetsRuns, 'an occurrence ran twice'],
  ['an occurrence of a schedule that is lost', LosesRuns, 'an occurrence is lost'],
  ['a job that leaves out tasks', ForgetsTasksOfJobs, 'a job ended without'],
  ['a job that counts tasks twice', CountsTwice, 'a job counts'],
])('simulation: finds %s', { timeout: 300_000 }, async (_name, Store, message) => {
  await expect(simulateQueue(10, { newDisk: () => new Store() })).rejects.toThrow(message);
});
