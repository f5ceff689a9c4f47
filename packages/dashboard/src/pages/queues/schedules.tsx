import * as queueLists from '@millrace/contract/lists/queue';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { useAction } from '../../parts/action.js';
import { Confirm } from '../../parts/confirm.js';
import { Button, DialogButton } from '../../parts/controls.js';
import { DataTable, listColumns } from '../../parts/data-table.js';
import { duration } from '../../parts/format.js';
import { Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { queueQueries, queueServer, type Schedule } from '../../queue/api.js';
import { ScheduleDialog } from './schedule-dialog.js';

/** The schedules of a queue: when they run, and what can be done with them. */
export function Schedules({ queue }: { queue: string }) {
  const schedules = useQuery(queueQueries.schedules(queue));
  return (
    <Panel
      title="Schedules"
      actions={
        <DialogButton className="small" label="New schedule…">
          {(onClose) => <ScheduleDialog {...{ queue, onClose }} />}
        </DialogButton>
      }
    >
      <Loaded
        query={schedules}
        empty={<Empty title="No schedules.">A schedule submits a task at set times.</Empty>}
      >
        {(list) => (
          <DataTable
            label="Schedules"
            columns={columnsFor(queue)}
            rows={list}
            rowKey={({ name }) => name}
          />
        )}
      </Loaded>
    </Panel>
  );
}

const pastTense = {
  runSchedule: 'Submitted a task of',
  pauseSchedule: 'Paused',
  resumeSchedule: 'Resumed',
} as const;

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
  const path = { queue, schedule: name };
  const act = useAction({
    run: async (action: keyof typeof pastTense): Promise<unknown> =>
      queueServer.call(action, { path }),
    done: (_, action) => `${pastTense[action]} ${name}.`,
    refresh: ['schedules', 'tasks', 'queues'],
  });
  const disabled = act.isDisabled;
  return (
    <div className="row schedule-actions">
      <Button className="small" disabled={disabled} onClick={() => act.mutate('runSchedule')}>
        Run now
      </Button>
      <Button
        className="small"
        disabled={disabled}
        onClick={() => act.mutate(paused ? 'resumeSchedule' : 'pauseSchedule')}
      >
        {paused ? 'Resume' : 'Pause'}
      </Button>
      <DialogButton className="small" label="Edit…">
        {(onClose) => <Edit {...{ queue, name, onClose }} />}
      </DialogButton>
      <DialogButton className="small danger" label="Delete">
        {(onClose) => (
          <Confirm
            title={`Delete the schedule ${name}?`}
            submitLabel="Delete"
            dangerous
            run={async (): Promise<unknown> => queueServer.call('deleteSchedule', { path })}
            done={() => `Deleted ${name}.`}
            refresh={['schedules']}
            onClose={onClose}
          >
            <p>It submits no more tasks. Tasks that it has submitted stay.</p>
          </Confirm>
        )}
      </DialogButton>
    </div>
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
