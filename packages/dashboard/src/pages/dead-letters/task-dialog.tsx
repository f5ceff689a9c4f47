import { useQuery } from '@tanstack/react-query';
import { Button } from '../../parts/controls.js';
import { Dialog } from '../../parts/dialog.js';
import { Loaded } from '../../parts/states.js';
import { queueQueries } from '../../queue/api.js';
import { TaskView } from '../tasks/task-view.js';

export type DlqAction = 'redrive' | 'purge';

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
          <Button className="danger" disabled={!isDead} onClick={() => onAction('purge')}>
            Purge
          </Button>
          <Button className="primary" disabled={!isDead} onClick={() => onAction('redrive')}>
            Redrive
          </Button>
        </>
      }
    >
      <Loaded query={task}>{(found) => <TaskView task={found} />}</Loaded>
    </Dialog>
  );
}
