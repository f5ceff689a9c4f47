import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { count } from '../../parts/format.js';
import { Loaded } from '../../parts/states.js';
import { purge, redrive, startJob, type Selector } from '../../queue/api.js';
import { filterText } from './filter.js';

export type DlqAction = 'redrive' | 'purge';

interface ActionDialogProps {
  action: DlqAction;
  queue: string;
  selector: Selector;
  onClose: () => void;
  onDone: () => void;
}

const names = { redrive: 'Redrive', purge: 'Purge' } as const;
const pastTense = { redrive: 'redriven', purge: 'purged' } as const;

/** Confirms a redrive or purge, with the current count from a dry run on the server. */
export function ActionDialog({ action, queue, selector, onClose, onDone }: ActionDialogProps) {
  const [rate, setRate] = useState('500');
  const preview = useQuery({
    queryKey: ['dead-preview', action, queue, selector],
    queryFn: async () => (await run(action, queue, selector, { dry_run: true })).count,
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  });
  const execute = useAction({
    run: () => {
      const more = action === 'redrive' ? { rate_per_second: Number(rate) } : {};
      return run(action, queue, selector, more);
    },
    done: ({ count: moved, complete }) => {
      const text = `${count(moved)} ${moved === 1 ? 'task' : 'tasks'} ${pastTense[action]}.`;
      return complete === false ? `${text} More match: run it again for the rest.` : text;
    },
    refresh: ['queues', 'dead-groups', 'queue-task'],
    onDone,
  });
  const start = useAction({
    run: () => startJob(queue, action, selector),
    done: ({ id }) => `Started job ${id}. Follow it on the Jobs tab of the queue.`,
    refresh: ['queues', 'jobs'],
    onDone,
  });
  const matching = preview.data ?? 0;
  return (
    <FormDialog
      title={`${names[action]} dead tasks of ${queue}?`}
      submitLabel={
        preview.data === undefined ? names[action] : `${names[action]} ${count(matching)}`
      }
      dangerous={action === 'purge'}
      busy={execute.isPending || matching === 0}
      alternative={
        matching > 1 && (
          <button type="button" disabled={start.isPending} onClick={() => start.mutate()}>
            {names[action]} in the background
          </button>
        )
      }
      onClose={onClose}
      onSubmit={() => execute.mutate()}
    >
      <Loaded query={preview} rows={1}>
        {(found) => <p>{sentence(action, found, selector)}</p>}
      </Loaded>
      {action === 'redrive' && matching > 1 && (
        <label className="field">
          Tasks per second
          <input
            type="number"
            min={0}
            max={1_000_000}
            required
            value={rate}
            onChange={(event) => setRate(event.target.value)}
          />
          <span className="field-hint">0 means no limit.</span>
        </label>
      )}
    </FormDialog>
  );
}

function run(
  action: DlqAction,
  queue: string,
  selector: Selector,
  more: { dry_run?: boolean; rate_per_second?: number },
) {
  return action === 'redrive' ? redrive(queue, selector, more) : purge(queue, selector, more);
}

function sentence(action: DlqAction, found: number, selector: Selector): string {
  const which = 'ids' in selector ? 'the selected tasks' : filterText(selector.filter);
  if (found === 0) return `Nothing to ${action}: no dead task matches (${which}).`;
  const tasks = `${count(found)} ${found === 1 ? 'task' : 'tasks'} (${which})`;
  return action === 'redrive'
    ? `${tasks} will be pending again. Attempts restart at 0; the history is retained.`
    : `${tasks} will be deleted. This cannot be undone.`;
}
