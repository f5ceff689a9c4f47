import { useAction } from '../../parts/action.js';
import { Confirm } from '../../parts/confirm.js';
import { Button, DialogButton, Field, Select } from '../../parts/controls.js';
import { navigate } from '../../parts/location.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { queueServer, runBulk, type Task } from '../../queue/api.js';
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
    run: (next: number) =>
      queueServer.call('updateTask', { path: { id }, body: { priority: next } }),
    done: (_, next) => `Priority is ${next}.`,
    refresh,
  });
  return (
    <label className="row">
      Priority
      <Select
        value={priority}
        options={priorities}
        disabled={change.isDisabled}
        onChange={(next) => change.mutate(Number(next))}
      />
    </label>
  );
}

function RunNow({ id }: { id: string }) {
  const run = useAction({
    run: () => queueServer.call('runTaskNow', { path: { id } }),
    done: () => 'The task is due now.',
    refresh,
  });
  return <Button action={run}>Run now</Button>;
}

function Cancel({ task: { id, status } }: { task: Task }) {
  const cancel = (form: FormData) => {
    const reason = String(form.get('reason')).trim();
    return queueServer.call('cancelTask', { path: { id }, body: reason === '' ? {} : { reason } });
  };
  return (
    <DialogButton className="danger" label="Cancel task">
      {(onClose) => (
        <Confirm
          title="Cancel this task?"
          submitLabel="Cancel task"
          dangerous
          run={cancel}
          done={() => 'Cancelled the task.'}
          refresh={refresh}
          onClose={onClose}
        >
          <p>
            {status === 'IN_FLIGHT'
              ? 'Its handler is interrupted, and the task is dead.'
              : 'It does not run, and is dead.'}{' '}
            You can redrive it later.
          </p>
          <Field
            label="Reason"
            name="reason"
            maxLength={1024}
            hint="Optional. Shown on the task and in the audit log."
          />
        </Confirm>
      )}
    </DialogButton>
  );
}

const isText = (base64: string) => toBase64(fromBase64(base64)) === base64;

/** A new task like this one, after changes to its payload. */
function SubmitAgain({ task }: { task: Task }) {
  return (
    <DialogButton label="Submit again…">
      {(onClose) => (
        <SubmitDialog
          queue={task.queue}
          like={task}
          onClose={onClose}
          onSubmitted={(id) => navigate(`/tasks/${id}`)}
        />
      )}
    </DialogButton>
  );
}

function Purge({ task: { id, queue } }: { task: Task }) {
  return (
    <DialogButton className="danger" label="Purge task…">
      {(onClose) => (
        <Confirm
          title="Purge this task?"
          submitLabel="Purge"
          dangerous
          run={() => runBulk('purge', queue, { ids: [id] })}
          done={() => 'Purged the task.'}
          // Not the task itself, which is gone.
          refresh={['queues', 'tasks', 'task-count', 'dead', 'dead-groups']}
          onDone={() => navigate(`/dead-letters/${queue}`)}
          onClose={onClose}
        >
          <p>The task and its payload are deleted for good.</p>
        </Confirm>
      )}
    </DialogButton>
  );
}

function Redrive({ task: { id, queue } }: { task: Task }) {
  const act = useAction({
    run: () => runBulk('redrive', queue, { ids: [id] }),
    done: () => 'The task is pending again.',
    refresh: [...refresh, 'dead', 'dead-groups'],
  });
  useShortcut('r', 'Redrive this task', () => act.mutate());
  return (
    <Button className="primary" action={act}>
      Redrive
    </Button>
  );
}
