import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useAction } from '../parts/action.js';
import { Button, Field } from '../parts/controls.js';
import { FormDialog } from '../parts/form-dialog.js';
import { count } from '../parts/format.js';
import { Loaded } from '../parts/states.js';
import {
  runBulk,
  startJob,
  type BulkAction,
  type CancelSelector,
  type Filter,
  type Selector,
} from './api.js';

interface BulkDialogProps {
  action: BulkAction;
  queue: string;
  selector: Selector | CancelSelector;
  /** What a filter selects. */
  filterText?: (filter: Filter) => string;
  onClose: () => void;
  onDone: () => void;
}

const tasks = (size: number): string => `${count(size)} ${size === 1 ? 'task' : 'tasks'}`;

const texts = {
  cancel: {
    title: (queue: string) => `Cancel pending tasks of ${queue}?`,
    submit: (size: number | undefined) => (size ? `Cancel ${tasks(size)}` : 'Cancel tasks'),
    done: (size: number) => `Cancelled ${tasks(size)}.`,
    preview: (size: number) =>
      `${tasks(size)} will not run. You can redrive them from the dead letters.`,
  },
  redrive: {
    title: (queue: string) => `Redrive dead tasks of ${queue}?`,
    submit: (size: number | undefined) => `Redrive ${size === undefined ? '' : count(size)}`.trim(),
    done: (size: number) => `${tasks(size)} redriven.`,
    preview: (size: number, which: string) =>
      `${tasks(size)} (${which}) will be pending again. ` +
      'Attempts restart at 0; the history is retained.',
  },
  purge: {
    title: (queue: string) => `Purge dead tasks of ${queue}?`,
    submit: (size: number | undefined) => `Purge ${size === undefined ? '' : count(size)}`.trim(),
    done: (size: number) => `${tasks(size)} purged.`,
    preview: (size: number, which: string) =>
      `${tasks(size)} (${which}) will be deleted. This cannot be undone.`,
  },
} as const satisfies Record<BulkAction, unknown>;

/** Confirms a cancel, redrive or purge, with the current count from a dry run on the server. */
export function BulkDialog(props: BulkDialogProps) {
  const { action, queue, selector, filterText, onClose, onDone } = props;
  const text = texts[action];
  const [rate, setRate] = useState('500');
  const preview = useQuery({
    queryKey: ['bulk-preview', action, queue, selector],
    queryFn: async () => (await runBulk(action, queue, { ...selector, dry_run: true })).count,
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  });
  const execute = useAction({
    run: () =>
      runBulk(action, queue, {
        ...selector,
        ...(action === 'redrive' && { rate_per_second: Number(rate) }),
      }),
    done: ({ count: size, complete }) =>
      text.done(size) + (complete === false ? ' More match: run it again for the rest.' : ''),
    refresh: ['queues', 'task-count', 'dead-groups', 'queue-task'],
    onDone,
  });
  const start = useAction({
    run: () => startJob(queue, action as 'redrive' | 'purge', selector as Selector),
    done: ({ id }) => `Started job ${id}. Follow it on the Jobs tab of the queue.`,
    refresh: ['queues', 'jobs'],
    onDone,
  });
  const matching = preview.data ?? 0;
  const which =
    'ids' in selector ? 'the selected tasks' : (filterText?.(selector.filter as Filter) ?? '');
  const nothing =
    action === 'cancel'
      ? 'No pending task matches.'
      : `Nothing to ${action}: no dead task matches (${which}).`;
  return (
    <FormDialog
      title={text.title(queue)}
      submitLabel={text.submit(preview.data)}
      dangerous={action !== 'redrive'}
      action={execute}
      busy={matching === 0}
      alternative={
        action !== 'cancel' &&
        matching > 1 && (
          <Button action={start}>
            {action === 'redrive' ? 'Redrive' : 'Purge'} in the background
          </Button>
        )
      }
      onClose={onClose}
    >
      <Loaded query={preview} rows={1}>
        {(found) => <p>{found === 0 ? nothing : text.preview(found, which)}</p>}
      </Loaded>
      {action === 'redrive' && matching > 1 && (
        <Field
          label="Tasks per second"
          type="number"
          min={0}
          max={1_000_000}
          required
          value={rate}
          hint="0 means no limit."
          onChange={setRate}
        />
      )}
    </FormDialog>
  );
}
