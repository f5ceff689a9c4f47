import { seededRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import { simulateQueue } from '../simulation/index.js';
import { MemoryStore } from './support/memory-store/index.js';
import type {
  JobStep,
  JobStepResult,
  RecordWrite,
  RecordWriteResult,
} from '../src/storage/port/task-store.js';

/** Makes the tasks of runs, but leaves the schedule as it is and gives each task a new id. */
class ForgetsRuns extends MemoryStore {
  readonly #random = seededRandom(1);

  override async writeRecord(write: RecordWrite): Promise<RecordWriteResult> {
    if (!isRun(write)) return super.writeRecord(write);
    const [record] = await this.listRecords(write);
    const tasks = write.tasks!.map((task) => ({ ...task, id: this.#random.ulid(write.now) }));
    return super.writeRecord({ ...write, state: record!.state, tasks });
  }
}

class LosesRuns extends MemoryStore {
  override writeRecord(write: RecordWrite): Promise<RecordWriteResult> {
    return super.writeRecord(isRun(write) ? { ...write, tasks: [] } : write);
  }
}

function isRun({ kind, tasks = [], state }: RecordWrite): boolean {
  const { nextRunAt } = state as { nextRunAt: number | null };
  return kind === 'schedule' && tasks.length > 0 && nextRunAt !== null;
}

class ForgetsTasksOfJobs extends MemoryStore {
  override runJobStep(step: JobStep): Promise<JobStepResult> {
    const { change } = step;
    return super.runJobStep({ ...step, change: { ...change, ids: change.ids.slice(1) } });
  }
}

/** As if a step were repeated after a crash. */
class CountsTwice extends MemoryStore {
  override runJobStep(step: JobStep): Promise<JobStepResult> {
    return super.runJobStep({ ...step, state: (count) => step.state(2 * count) });
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
