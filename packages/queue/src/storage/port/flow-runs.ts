import { isEnded, type StoredSignal, type StoredStep, type WokenBy } from '../../core/flow.js';
import type { Task, TaskStatus } from '../../core/task.js';
import { signalOf } from './flow-run.js';
import type { FlowRowKind, FlowStore, TaskWithResult } from './flow-store.js';
import type { TaskStore } from './task-store.js';

/** What a handler needs to continue a task. */
export interface TaskRun {
  /** In the order of recording. */
  steps: StoredStep[];
  /** Unread, in the order of arrival. */
  signals: StoredSignal[];
  /** In the order given. */
  dependencies: EndedTask[];
  /** The tasks that the last suspension waited for. */
  children: EndedTask[];
  wokenBy: WokenBy | undefined;
}

export interface EndedTask {
  id: string;
  key?: string | undefined;
  /** Absent if the task is gone. */
  handlerRef?: string | undefined;
  status: TaskStatus;
  /** JSON text; null: none. */
  result: string | null;
  isResultOmitted: boolean;
}

/** One that is gone has no handler and no result. */
type KnownTask = Pick<TaskWithResult, 'status' | 'result' | 'flow'> & {
  handlerRef: string | undefined;
};

/** Results of one list, in bytes of JSON. */
const maxResultBytes = 256 * 1024;

/** The runs of those of these tasks that belong to flows. */
export async function readRuns(
  store: FlowStore & Pick<TaskStore, 'getTask'>,
  tasks: readonly Pick<Task, 'id' | 'flow'>[],
): Promise<Map<string, TaskRun>> {
  const inFlow = tasks.filter(({ flow }) => flow);
  const ids = inFlow
    .filter(({ flow }) => flow!.steps?.count || flow!.signals || flow!.hasAwaited)
    .map(({ id }) => id);
  const kinds = ['step', 'signal', 'awaited'] as const;
  const rows = ids.length > 0 ? await store.readFlowRows({ kinds, ids }) : [];
  const wanted = new Set<string>();
  for (const { kind, key } of rows) if (kind === 'awaited') wanted.add(key);
  for (const { flow } of inFlow) for (const { id } of flow!.dependsOn ?? []) wanted.add(id);
  const found = wanted.size > 0 ? await store.readTasks([...wanted]) : [];
  const known = new Map<string, KnownTask>(found.map((task) => [task.id, task]));
  for (const id of wanted) {
    const gone = known.has(id) ? undefined : await store.getTask(id);
    const status = gone && isEnded(gone.status) ? gone.status : 'DEAD';
    if (gone) known.set(id, { handlerRef: undefined, status, result: null });
  }
  return new Map(
    inFlow.map(({ id, flow }): [string, TaskRun] => {
      const own = (kind: FlowRowKind) => rows.filter((row) => row.id === id && row.kind === kind);
      const waitedFor = own('awaited').toSorted((a, b) => Number(a.value) - Number(b.value));
      const dependencies = (flow!.dependsOn ?? []).map((each) => endedTask(each, known));
      const children = waitedFor.map(({ key }) => endedTask({ id: key }, known));
      const run = {
        steps: own('step').map(({ value }) => JSON.parse(value) as StoredStep),
        signals: own('signal').map(signalOf),
        dependencies: limited(dependencies),
        children: limited(children, Infinity),
        wokenBy: flow!.wokenBy,
      };
      run.steps.sort((a, b) => a.number - b.number);
      run.signals = run.signals
        .filter(({ isConsumed }) => !isConsumed)
        .toSorted((a, b) => a.number - b.number);
      return [id, run];
    }),
  );
}

function endedTask(
  { id, status }: { id: string; status?: TaskStatus | undefined },
  known: ReadonlyMap<string, KnownTask>,
): EndedTask {
  const task = known.get(id);
  return {
    id,
    key: task?.flow?.key,
    handlerRef: task?.handlerRef,
    // Of a dependency the end is remembered. Nothing says that a task without a trace succeeded.
    status: status ?? task?.status ?? 'DEAD',
    result: task?.result ?? null,
    isResultOmitted: false,
  };
}

/** Leaves out all results if they are too large together. */
export function limited(tasks: readonly EndedTask[], maxBytes = maxResultBytes): EndedTask[] {
  const bytes = tasks.reduce((sum, { result }) => sum + Buffer.byteLength(result ?? ''), 0);
  if (bytes <= maxBytes) return [...tasks];
  return tasks.map((task) =>
    task.result === null ? task : { ...task, result: null, isResultOmitted: true },
  );
}
