import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { cancelTask, redrive, runNow, setPriority, type Task } from '../../queue/api.js';

const refresh = ['queue-task', 'queues', 'tasks', 'task-count'];
const priorities = Array.from({ length: 10 }, (_, priority) => priority);

/** What can be done with a task in its status. */
export function TaskActions({ task }: { task: Task }) {
  const { status } = task;
  const isPending = status === 'PENDING';
  return (
    <>
      {isPending && <Priority task={task} />}
      {isPending && <RunNow id={task.id} />}
      {(isPending || status === 'IN_FLIGHT') && <Cancel task={task} />}
      {status === 'DEAD' && <Redrive task={task} />}
    </>
  );
}

function Priority({ task: { id, priority } }: { task: Task }) {
  const change = useAction({
    run: (next: number) => setPriority(id, next),
    done: (_, next) => `Priority is ${next}.`,
    refresh,
  });
  return (
    <label className="row">
      Priority
      <select
        value={priority}
        disabled={change.isPending}
        onChange={(event) => change.mutate(Number(event.target.value))}
      >
        {priorities.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
}

function RunNow({ id }: { id: string }) {
  const run = useAction({ run: () => runNow(id), done: () => 'The task is due now.', refresh });
  return (
    <button type="button" disabled={run.isPending} onClick={() => run.mutate()}>
      Run now
    </button>
  );
}

function Cancel({ task: { id, status } }: { task: Task }) {
  const [isConfirming, setIsConfirming] = useState(false);
  const [reason, setReason] = useState('');
  const cancel = useAction({
    run: () => cancelTask(id, reason.trim()),
    done: () => 'Cancelled the task.',
    refresh,
    onDone: () => setIsConfirming(false),
  });
  return (
    <>
      <button type="button" className="danger" onClick={() => setIsConfirming(true)}>
        Cancel task
      </button>
      {isConfirming && (
        <FormDialog
          title="Cancel this task?"
          submitLabel="Cancel task"
          dangerous
          busy={cancel.isPending}
          onSubmit={() => cancel.mutate()}
          onClose={() => setIsConfirming(false)}
        >
          <p>
            {status === 'IN_FLIGHT'
              ? 'Its handler is interrupted, and the task is dead.'
              : 'It does not run, and is dead.'}{' '}
            You can redrive it later.
          </p>
          <label className="field">
            Reason
            <input
              maxLength={1024}
              value={reason}
              onChange={(event) => setReason(event.target.value)}
            />
            <span className="field-hint">Optional. Shown on the task and in the audit log.</span>
          </label>
        </FormDialog>
      )}
    </>
  );
}

function Redrive({ task: { id, queue } }: { task: Task }) {
  const act = useAction({
    run: () => redrive(queue, { ids: [id] }, {}),
    done: () => 'The task is pending again.',
    refresh: [...refresh, 'dead', 'dead-groups'],
  });
  useShortcut('r', 'Redrive this task', () => act.mutate());
  return (
    <button type="button" className="primary" disabled={act.isPending} onClick={() => act.mutate()}>
      Redrive
    </button>
  );
}
