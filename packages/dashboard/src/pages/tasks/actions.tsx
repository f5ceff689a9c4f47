import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { navigate } from '../../parts/location.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { cancelTask, purge, redrive, runNow, setPriority, type Task } from '../../queue/api.js';
import { fromBase64, toBase64 } from '../../queue/payload.js';
import { SubmitDialog } from '../../queue/submit-dialog.js';

const refresh = ['queue-task', 'queues', 'tasks', 'task-count'];
const priorities = Array.from({ length: 10 }, (_, priority) => priority);

/** What can be done with a task in its status. */
export function TaskActions({ task }: { task: Task }) {
  const { status } = task;
  const isPending = status === 'PENDING';
  const hasEnded = status === 'DEAD' || status === 'SUCCEEDED';
  return (
    <>
      {isPending && <Priority task={task} />}
      {isPending && <RunNow id={task.id} />}
      {(isPending || status === 'IN_FLIGHT') && <Cancel task={task} />}
      {hasEnded && isText(task.payload) && <SubmitAgain task={task} />}
      {status === 'DEAD' && <Purge task={task} />}
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

const isText = (base64: string) => toBase64(fromBase64(base64)) === base64;

/** A new task like this one, after changes to its payload. */
function SubmitAgain({ task }: { task: Task }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setIsOpen(true)}>
        Submit again…
      </button>
      {isOpen && (
        <SubmitDialog
          queue={task.queue}
          like={task}
          onClose={() => setIsOpen(false)}
          onSubmitted={(id) => navigate(`/tasks/${id}`)}
        />
      )}
    </>
  );
}

function Purge({ task: { id, queue } }: { task: Task }) {
  const [isConfirming, setIsConfirming] = useState(false);
  const act = useAction({
    run: () => purge(queue, { ids: [id] }, {}),
    done: () => 'Purged the task.',
    // Not the task itself, which is gone.
    refresh: ['queues', 'tasks', 'task-count', 'dead', 'dead-groups'],
    onDone: () => navigate(`/dead-letters/${queue}`),
  });
  return (
    <>
      <button type="button" className="danger" onClick={() => setIsConfirming(true)}>
        Purge task…
      </button>
      {isConfirming && (
        <FormDialog
          title="Purge this task?"
          submitLabel="Purge"
          dangerous
          busy={act.isPending}
          onSubmit={() => act.mutate()}
          onClose={() => setIsConfirming(false)}
        >
          <p>The task and its payload are deleted for good.</p>
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
