import { useQuery } from '@tanstack/react-query';
import { Dialog } from '../../parts/dialog.js';
import { Loaded } from '../../parts/states.js';
import { queueQueries } from '../../queue/api.js';
import { TaskView } from '../tasks/task-view.js';
import type { DlqAction } from './action-dialog.js';

interface TaskDialogProps {
  id: string;
  onClose: () => void;
  onAction: (action: DlqAction) => void;
}

/** One dead task with its payload and attempts. */
export function TaskDialog({ id, onClose, onAction }: TaskDialogProps) {
  const task = useQuery(queueQueries.task(id));
  const isDead = task.data?.status === 'DEAD';
  return (
    <Dialog
      wide
      title="Dead task"
      onClose={onClose}
      actions={
        <>
          <button
            type="button"
            className="danger"
            disabled={!isDead}
            onClick={() => onAction('purge')}
          >
            Purge
          </button>
          <button
            type="button"
            className="primary"
            disabled={!isDead}
            onClick={() => onAction('redrive')}
          >
            Redrive
          </button>
        </>
      }
    >
      <Loaded query={task}>{(found) => <TaskView task={found} />}</Loaded>
    </Dialog>
  );
}
