import * as queueLists from '@millrace/contract/lists/queue';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { useAction } from '../../parts/action.js';
import { DataTable, listColumns } from '../../parts/data-table.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { duration } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import {
  actOnSchedule,
  deleteSchedule,
  queueQueries,
  type Schedule,
  type ScheduleAction,
} from '../../queue/api.js';
import { ScheduleDialog } from './schedule-dialog.js';

/** The schedules of a queue: when they run, and what can be done with them. */
export function Schedules({ queue }: { queue: string }) {
  const schedules = useQuery(queueQueries.schedules(queue));
  const [isAdding, setIsAdding] = useState(false);
  return (
    <Panel
      title="Schedules"
      actions={
        <button type="button" className="small" onClick={() => setIsAdding(true)}>
          New schedule…
        </button>
      }
    >
      <Loaded query={schedules}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="No schedules.">A schedule submits a task at set times.</Empty>
          ) : (
            <DataTable
              label="Schedules"
              columns={columnsFor(queue)}
              rows={list}
              rowKey={({ name }) => name}
            />
          )
        }
      </Loaded>
      {isAdding && <ScheduleDialog queue={queue} onClose={() => setIsAdding(false)} />}
    </Panel>
  );
}

const pastTense: Readonly<Record<ScheduleAction, string>> = {
  'run-now': 'Submitted a task of',
  pause: 'Paused',
  resume: 'Resumed',
};

const columnsFor = (queue: string) =>
  listColumns(queueLists.schedules, {
    Schedule: {
      cell: ({ name, paused }) => (
        <>
          {name} {paused && <Status tone="warn">paused</Status>}
        </>
      ),
    },
    When: { header: 'Runs', cell: timesText },
    Handler: {},
    Next: {
      header: 'Next run',
      cell: ({ paused, next_run_at: next }) => (paused ? '–' : <Time at={next} />),
    },
    Last: { header: 'Last run', cell: (schedule) => <LastRun schedule={schedule} /> },
    Actions: { isBare: true, cell: (schedule) => <Actions {...{ queue, schedule }} /> },
  });

function LastRun({ schedule: { last_task_id: id, last_run_at: at } }: { schedule: Schedule }) {
  const time = <Time at={at} />;
  return id ? <Link href={`/tasks/${id}`}>{time}</Link> : time;
}

function Actions({ queue, schedule }: { queue: string; schedule: Schedule }) {
  const { name, paused } = schedule;
  const [dialog, setDialog] = useState<'edit' | 'delete'>();
  const close = () => setDialog(undefined);
  const act = useAction({
    run: (action: ScheduleAction) => actOnSchedule(queue, name, action),
    done: (_, action) => `${pastTense[action]} ${name}.`,
    refresh: ['schedules', 'tasks', 'queues'],
  });
  const button = (text: string, onClick: () => void, more: object = {}) => (
    <button type="button" className="small" onClick={onClick} {...more}>
      {text}
    </button>
  );
  const disabled = act.isPending;
  return (
    <>
      <div className="row schedule-actions">
        {button('Run now', () => act.mutate('run-now'), { disabled })}
        {button(paused ? 'Resume' : 'Pause', () => act.mutate(paused ? 'resume' : 'pause'), {
          disabled,
        })}
        {button('Edit…', () => setDialog('edit'))}
        {button('Delete', () => setDialog('delete'), { className: 'small danger' })}
      </div>
      {dialog === 'edit' && <Edit {...{ queue, name }} onClose={close} />}
      {dialog === 'delete' && <Delete {...{ queue, name }} onClose={close} />}
    </>
  );
}

/** A cron expression with its time zone, or `every 30 s`. */
function timesText({ cron, every_ms, timezone }: Schedule): string {
  if (cron) return timezone === 'UTC' ? cron : `${cron} in ${timezone}`;
  return `every ${duration(every_ms)}`;
}

function Edit({ queue, name, onClose }: { queue: string; name: string; onClose: () => void }) {
  const schedule = useQuery(queueQueries.schedule(queue, name));
  return (
    <Loaded query={schedule}>
      {(one) => <ScheduleDialog {...{ queue, onClose }} schedule={one} />}
    </Loaded>
  );
}

function Delete({ queue, name, onClose }: { queue: string; name: string; onClose: () => void }) {
  const remove = useAction({
    run: () => deleteSchedule(queue, name),
    done: () => `Deleted ${name}.`,
    refresh: ['schedules'],
    onDone: onClose,
  });
  return (
    <FormDialog
      title={`Delete the schedule ${name}?`}
      submitLabel="Delete"
      dangerous
      busy={remove.isPending}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    >
      <p>It submits no more tasks. Tasks that it has submitted stay.</p>
    </FormDialog>
  );
}
