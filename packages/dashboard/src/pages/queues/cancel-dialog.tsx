import { useQuery } from '@tanstack/react-query';
import { useAction } from '../../parts/action.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { count } from '../../parts/format.js';
import { Loaded } from '../../parts/states.js';
import { cancelTasks, type CancelSelector } from '../../queue/api.js';

interface CancelDialogProps {
  queue: string;
  selector: CancelSelector;
  onClose: () => void;
  onDone: () => void;
}

/** Confirms a bulk cancel, with the current count from a dry run on the server. */
export function CancelDialog({ queue, selector, onClose, onDone }: CancelDialogProps) {
  const preview = useQuery({
    queryKey: ['cancel-preview', queue, selector],
    queryFn: async () => (await cancelTasks(queue, selector, true)).count,
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  });
  const execute = useAction({
    run: () => cancelTasks(queue, selector, false),
    done: ({ count: cancelled }) => `Cancelled ${tasks(cancelled)}.`,
    refresh: ['queues', 'task-count'],
    onDone,
  });
  const matching = preview.data ?? 0;
  return (
    <FormDialog
      title={`Cancel pending tasks of ${queue}?`}
      submitLabel={matching === 0 ? 'Cancel tasks' : `Cancel ${tasks(matching)}`}
      dangerous
      busy={execute.isPending || matching === 0}
      onClose={onClose}
      onSubmit={() => execute.mutate()}
    >
      <Loaded query={preview} rows={1}>
        {(found) => (
          <p>
            {found === 0
              ? 'No pending task matches.'
              : `${tasks(found)} will not run. You can redrive them from the dead letters.`}
          </p>
        )}
      </Loaded>
    </FormDialog>
  );
}

const tasks = (size: number): string => `${count(size)} ${size === 1 ? 'task' : 'tasks'}`;
