import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { useAction } from '../../parts/action.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { duration } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import {
  actOnSchedule,
  deleteSchedule,
  nextQueries,
  type Schedule,
  type ScheduleAction,
} from '../../queue/next-api.js';
import { ScheduleDialog } from './schedule-dialog.js';

/** The schedules of a queue: when they run, and what can be done with them. */
export function Schedules({ queue }: { queue: string }) {
  const schedules = useQuery(nextQueries.schedules(queue));
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
            <div className="scroll-x" tabIndex={0} role="group" aria-label="Schedules">
              <table role="table" className="table cards">
                <thead>
                  <tr>
                    <th scope="col">Schedule</th>
                    <th scope="col">Runs</th>
                    <th scope="col">Handler</th>
                    <th scope="col">Next run</th>
                    <th scope="col">Last run</th>
                    <th scope="col">
                      <span className="visually-hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {list.map((one) => (
                    <ScheduleRow key={one.name} queue={queue} schedule={one} />
                  ))}
                </tbody>
              </table>
            </div>
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

function ScheduleRow({ queue, schedule }: { queue: string; schedule: Schedule }) {
  const { name, paused, last_task_id, task } = schedule;
  const [dialog, setDialog] = useState<'edit' | 'delete'>();
  const close = () => setDialog(undefined);
  const act = useAction({
    run: (action: ScheduleAction) => actOnSchedule(queue, name, action),
    done: (_, action) => `${pastTense[action]} ${name}.`,
    refresh: ['schedules', 'tasks', 'queues'],
  });
  return (
    <tr>
      <th scope="row">
        {name} {paused && <Status tone="warn">paused</Status>}
      </th>
      <td data-label="Runs">{timesText(schedule)}</td>
      <td data-label="Handler">{task.handler_ref}</td>
      <td data-label="Next run">{paused ? '–' : <Time at={schedule.next_run_at} />}</td>
      <td data-label="Last run">
        {last_task_id ? (
          <Link href={`/tasks/${last_task_id}`}>
            <Time at={schedule.last_run_at} />
          </Link>
        ) : (
          <Time at={schedule.last_run_at} />
        )}
      </td>
      <td>
        <div className="row schedule-actions">
          <button
            type="button"
            className="small"
            disabled={act.isPending}
            onClick={() => act.mutate('run-now')}
          >
            Run now
          </button>
          <button
            type="button"
            className="small"
            disabled={act.isPending}
            onClick={() => act.mutate(paused ? 'resume' : 'pause')}
          >
            {paused ? 'Resume' : 'Pause'}
          </button>
          <button type="button" className="small" onClick={() => setDialog('edit')}>
            Edit…
          </button>
          <button type="button" className="small danger" onClick={() => setDialog('delete')}>
            Delete
          </button>
        </div>
        {dialog === 'edit' && <Edit {...{ queue, name }} onClose={close} />}
        {dialog === 'delete' && <Delete {...{ queue, name }} onClose={close} />}
      </td>
    </tr>
  );
}

/** A cron expression with its time zone, or `every 30 s`. */
function timesText({ cron, every_ms, timezone }: Schedule): string {
  if (cron) return timezone === 'UTC' ? cron : `${cron} in ${timezone}`;
  return `every ${duration(every_ms)}`;
}

function Edit({ queue, name, onClose }: { queue: string; name: string; onClose: () => void }) {
  const schedule = useQuery(nextQueries.schedule(queue, name));
  if (schedule.data) return <ScheduleDialog {...{ queue, onClose }} schedule={schedule.data} />;
  if (!schedule.error) return null;
  return (
    <FormDialog
      title={`Edit the schedule ${name}`}
      submitLabel="Retry"
      busy={schedule.isFetching}
      error={schedule.error}
      onSubmit={() => void schedule.refetch()}
      onClose={onClose}
    >
      The schedule could not be read.
    </FormDialog>
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
