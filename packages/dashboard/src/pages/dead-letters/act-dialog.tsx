import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { Confirm } from '../../parts/dialog.js';
import { count } from '../../parts/format.js';
import { Loaded } from '../../parts/states.js';
import { purge, redrive, type Selector } from '../queues/api.js';
import { filterText } from './filter.js';

export type Deed = 'redrive' | 'purge';

interface ActDialogProps {
  deed: Deed;
  queue: string;
  selector: Selector;
  onClose: () => void;
  onDone: () => void;
}

const names = { redrive: 'Redrive', purge: 'Purge' } as const;
const done = { redrive: 'redriven', purge: 'purged' } as const;

/** Asks before dead tasks are moved or deleted, with their number as the server counts it now. */
export function ActDialog({ deed, queue, selector, onClose, onDone }: ActDialogProps) {
  const [rate, setRate] = useState('500');
  const trial = useQuery({
    queryKey: ['dead-trial', deed, queue, selector],
    queryFn: async () => (await run(deed, queue, selector, { dry_run: true })).count,
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  });
  const act = useAction({
    run: () => {
      const more = deed === 'redrive' ? { rate_per_second: Number(rate) } : {};
      return run(deed, queue, selector, more);
    },
    done: ({ count: moved, complete }) => {
      const text = `${count(moved)} ${moved === 1 ? 'task' : 'tasks'} ${done[deed]}.`;
      return complete === false ? `${text} There are more: do it again for the rest.` : text;
    },
    refresh: ['queues', 'dead-groups', 'queue-task'],
    onDone,
  });
  const many = trial.data ?? 0;
  return (
    <Confirm
      title={`${names[deed]} dead tasks of ${queue}?`}
      deed={trial.data === undefined ? names[deed] : `${names[deed]} ${count(many)}`}
      dangerous={deed === 'purge'}
      busy={act.isPending || many === 0}
      onClose={onClose}
      onConfirm={() => act.mutate()}
    >
      <Loaded query={trial} rows={1}>
        {(found) => <p>{sentence(deed, found, selector)}</p>}
      </Loaded>
      {deed === 'redrive' && many > 1 && (
        <label className="field">
          Starts a second
          <input
            type="number"
            min={0}
            max={1_000_000}
            required
            value={rate}
            onChange={(event) => setRate(event.target.value)}
          />
          <span className="field-hint">0 starts all of them at once.</span>
        </label>
      )}
    </Confirm>
  );
}

function run(
  deed: Deed,
  queue: string,
  selector: Selector,
  more: { dry_run?: boolean; rate_per_second?: number },
) {
  return deed === 'redrive' ? redrive(queue, selector, more) : purge(queue, selector, more);
}

function sentence(deed: Deed, found: number, selector: Selector): string {
  const which = 'ids' in selector ? 'the selected tasks' : filterText(selector.filter);
  if (found === 0) return `There is nothing to ${deed}: ${which} – none is in the queue any more.`;
  const tasks = `${count(found)} ${found === 1 ? 'task' : 'tasks'} (${which})`;
  return deed === 'redrive'
    ? `${tasks} will be pending again, with their attempts counted anew and their history kept.`
    : `${tasks} will be deleted for good. This cannot be undone.`;
}
