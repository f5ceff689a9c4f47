import type { StoredStep } from '../../core/flow.js';
import { failDependent, redriveRow, toTask } from '../port/store-parts.js';
import { tasksEnded } from '../port/flow-graph.js';
import { newRows, settleRecorded, stepsOf, withRead } from '../port/flow-run.js';
import type { FlowChange, FlowIo } from '../port/flow-program.js';
import { runNow } from '../port/flow-program.js';
import type { Settlement, SettleResult, StepRecords, StepResult } from '../port/task-store.js';
import { readFlowRows, readRow, writeFlowRows } from './flow-rows.js';
import { holdKeyAgain } from './indexes.js';
import type { Step } from './step.js';
import { isTombstone } from './task-codec.js';
import { insertTask, settle } from './transitions.js';

/** Answers the requests of a flow program within a step. */
export function flowIo(step: Step, now: number): FlowIo {
  return {
    // Nothing else runs during a step.
    lock: () => undefined,
    tasks: ({ ids }) =>
      new Map(
        ids.flatMap((id) => {
          const found = step.find(id, true);
          return found ? [[id, isTombstone(found) ? found : toTask(found.row)] as const] : [];
        }),
      ),
    insert: ({ tasks }) =>
      tasks.map((task) => {
        step.woken.queues.add(task.queue);
        return insertTask(step, task, now);
      }),
    settle: ({ settlement }) => settle(step, settlement),
    change: ({ changes }) => {
      for (const change of changes) changeTask(step, change, now);
    },
    rows: (query) => readFlowRows(step.rows, query),
    write: (change) => writeFlowRows(step.rows, change),
  };
}

/** Settles a claim; one that suspends its task waits from now on. */
export function settleInFlow(step: Step, settlement: Settlement): SettleResult {
  const request = stepsOf(settlement);
  const recorded = request && recordSteps(step, request);
  return runNow(settleRecorded(settlement, recorded), flowIo(step, settlement.now));
}

/** Records steps as the program of the port does, without its generator for each read. */
export function recordSteps(step: Step, request: StepRecords): StepResult {
  const { id, steps } = request;
  const found = step.find(id);
  const task = found && !isTombstone(found) ? found : undefined;
  const known = new Map<string, StoredStep>();
  for (const { name } of task?.row.flow?.steps?.count ? steps : []) {
    const row = readRow(step.rows, { id, kind: 'step', key: name });
    if (row) known.set(id + name, JSON.parse(row.value) as StoredStep);
  }
  const result = newRows(request, task?.row, undefined, known);
  if (!('rows' in result)) return result;
  if (result.rows.length > 0) {
    const query = { kinds: ['signal'] as const, ids: [id], keys: result.consumed };
    const { rows, flow } = withRead(result, readFlowRows(step.rows, query));
    task!.row.flow = flow;
    step.store(task!);
    writeFlowRows(step.rows, { puts: rows, removals: [] });
  }
  return { kind: 'done', steps: result.steps };
}

/** Notifies waiting tasks of the ends of this step, and those of theirs, until none is left. */
export function finishFlows(step: Step): void {
  while (step.ended.size > 0) {
    const { ended, endedAt: now } = step;
    step.ended = new Map();
    runNow(tasksEnded(ended, now), flowIo(step, now));
  }
}

function changeTask(step: Step, change: FlowChange, now: number): void {
  const task = step.task(change.id);
  if (!task) throw new Error(`A flow changes a missing task: ${change.id}`);
  const { row } = task;
  const { dueAt, dead, redriveAt } = change;
  if (dueAt !== undefined || dead) step.leave(task, { isReady: false });
  if (redriveAt !== undefined) {
    step.leaveDead(task);
    redriveRow(row, redriveAt, now);
    holdKeyAgain(step.rows, task.queueNumber, row, now);
  }
  row.flow = change.flow;
  if (dead) {
    failDependent(row, dead);
    step.died(task);
    step.note('dead', task, now, { error: dead, deadReason: 'DEPENDENCY_FAILED' });
    step.woken.dead.add(row.id);
  } else if (dueAt !== undefined || redriveAt !== undefined) {
    row.dueAt = dueAt ?? row.dueAt;
    row.updatedAt = now;
    step.enter(task, now);
    step.woken.queues.add(row.queue);
  }
  step.store(task);
}
