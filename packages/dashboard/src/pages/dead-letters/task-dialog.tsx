import { useQuery } from '@tanstack/react-query';
import { Dialog } from '../../parts/dialog.js';
import { Loaded } from '../../parts/states.js';
import { queueQueries } from '../queues/api.js';
import { TaskView } from '../queues/task-view.js';
import type { Deed } from './act-dialog.js';

interface TaskDialogProps {
  id: string;
  onClose: () => void;
  onAct: (deed: Deed) => void;
}

/** One dead task with its payload and every attempt. */
export function TaskDialog({ id, onClose, onAct }: TaskDialogProps) {
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
            onClick={() => onAct('purge')}
          >
            Purge
          </button>
          <button
            type="button"
            className="primary"
            disabled={!isDead}
            onClick={() => onAct('redrive')}
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
