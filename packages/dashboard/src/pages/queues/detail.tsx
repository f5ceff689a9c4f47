import { ApiError } from '@millrace/client';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useAction } from '../../parts/action.js';
import { useChoice } from '../../parts/choice.js';
import { Button, DialogButton } from '../../parts/controls.js';
import { count, duration } from '../../parts/format.js';
import { setParams, useIdParam } from '../../parts/location.js';
import { Figure, Page, Panel } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Failure, Loaded, Loading } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { toast } from '../../parts/toast.js';
import { queueQueries, queueServer, type QueueConfig, type QueueItem } from '../../queue/api.js';
import { ConfigDialog } from './config-dialog.js';
import { ConfigView } from './config-view.js';
import { HistoryCharts } from './history-charts.js';
import { Jobs } from './jobs.js';
import { Schedules } from './schedules.js';
import { TaskTable } from './task-table.js';
import { Workers } from './workers.js';
import { ageText } from './list.js';
import { rateText } from './rates.js';
import { QueueState } from './queue-state.js';
import { SubmitDialog } from '../../queue/submit-dialog.js';
import { TaskLookup } from './task-lookup.js';
import { useHistory } from './use-history.js';

/** One queue: figures, actions, config. */
export function QueueDetail({ queue }: { queue: string }) {
  const queues = useQuery(queueQueries.all());
  const config = useQuery(queueQueries.config(queue));
  const history = useHistory(queues.data, queues.dataUpdatedAt);
  const [tab, tabs] = useChoice('tab', 'overview', 'View', tabTitles, true);
  const [taskId, setTaskId] = useIdParam('task');
  const item = queues.data?.find(({ name }) => name === queue);
  const above = <Link href="/queues">Queues</Link>;
  if (config.error instanceof ApiError && config.error.code === 'QUEUE_NOT_FOUND') {
    return (
      <Page title={queue} above={above}>
        <Empty title="This queue does not exist.">
          Create it from a config file:{' '}
          <code>
            ctl queue config set {queue} {queue}.json
          </code>
        </Empty>
      </Page>
    );
  }
  return (
    <Page
      title={queue}
      above={above}
      actions={item && <Actions item={item} isPull={config.data?.callback.protocol === 'pull'} />}
    >
      {queues.data && !item && !config.isError && <Loading rows={1} />}
      {queues.isError && !config.isError && (
        <Failure error={queues.error} onRetry={queues.refetch} />
      )}
      {item && (
        <Figures item={item} rate={rateText(history.rateOf(queue))}>
          <BreakerFigure config={config.data} summary={item.summary} />
        </Figures>
      )}
      {tabs}
      {tab === 'tasks' && <TaskTable queue={queue} />}
      {tab === 'schedules' && <Schedules queue={queue} />}
      {tab === 'workers' && <Workers queue={queue} />}
      {tab === 'jobs' && <Jobs queue={queue} />}
      {tab === 'overview' && (
        <>
          <HistoryCharts queue={queue} />
          <TaskLookup id={taskId} onLookup={setTaskId} />
          <Panel
            title="Config"
            actions={
              config.data && (
                <DialogButton className="small" label="Edit…">
                  {(close) => <ConfigDialog config={config.data} onClose={close} onSaved={close} />}
                </DialogButton>
              )
            }
          >
            <Loaded query={config}>{(found) => <ConfigView config={found} />}</Loaded>
          </Panel>
        </>
      )}
    </Page>
  );
}

const tabTitles = {
  overview: 'Overview',
  tasks: 'Tasks',
  schedules: 'Schedules',
  workers: 'Workers',
  jobs: 'Jobs',
};

interface ActionsProps {
  item: QueueItem;
  /** Workers claim its tasks: there is no callback to test. */
  isPull: boolean;
}

function Actions({ item: { name, summary }, isPull }: ActionsProps) {
  const path = { queue: name };
  const pause = useAction({
    run: () => queueServer.call(summary.paused ? 'resumeQueue' : 'pauseQueue', { path }),
    done: () => (summary.paused ? `Resumed ${name}.` : `Paused ${name}.`),
    refresh: ['queues', 'queue-config'],
  });
  useShortcut('p', 'Pause or resume delivery', () => pause.mutate());
  const probe = useAction({
    run: () => queueServer.call('testCallback', { path }),
    onDone: ({ delivered, http_status, duration_ms, error_type, message }) => {
      if (delivered) {
        toast('good', `The callback returned HTTP ${http_status} in ${duration(duration_ms)}.`);
      } else {
        toast('bad', `The callback failed: ${error_type}. ${message ?? ''}`);
      }
    },
  });
  return (
    <>
      <Button action={pause}>{summary.paused ? 'Resume' : 'Pause'}</Button>
      {!isPull && <Button action={probe}>Test callback</Button>}
      <DialogButton className="primary" label="Submit test task" shortcut="n">
        {(onClose) => (
          <SubmitDialog
            queue={name}
            onClose={onClose}
            onSubmitted={(id) => {
              onClose();
              setParams({ task: id, tab: '' });
            }}
          />
        )}
      </DialogButton>
    </>
  );
}

interface FiguresProps {
  item: QueueItem;
  rate: string;
  children: ReactNode;
}

function Figures({ item: { name, summary }, rate, children }: FiguresProps) {
  const { pending, delayed = 0, in_flight, dlq_depth } = summary;
  const notes = [
    delayed > 0 && `${count(delayed)} not due yet`,
    rate !== '–' && `${rate} net change`,
  ].filter(Boolean);
  return (
    <div className="figures">
      <Figure name="State" value={<QueueState summary={summary} />} />
      <Figure name="Pending" value={count(pending)} note={notes.join(', ')} />
      <Figure name="In flight" value={count(in_flight)} />
      <Figure name="Oldest due" value={ageText(summary)} />
      {children}
      <Figure
        name="Dead letters"
        value={count(dlq_depth)}
        note={dlq_depth > 0 && <Link href={`/dead-letters/${name}`}>Show dead letters</Link>}
      />
    </div>
  );
}

interface BreakerFigureProps {
  config: QueueConfig | undefined;
  summary: QueueItem['summary'];
}

function BreakerFigure({ config, summary: { breaker, breakers = [] } }: BreakerFigureProps) {
  if (!config) return <Figure name="Breaker" value="–" />;
  const { enabled, failure_ratio: ratio, min_requests: min } = config.circuit_breaker;
  if (!enabled) return <Figure name="Breaker" value="off" />;
  const tripped = breakers.filter(({ state }) => state !== 'closed');
  const note = tripped.map(({ handler_ref: handler, next_probe_at: at }) => (
    <div key={handler}>
      {handler}
      {at !== null && ': next probe '}
      {at !== null && <Time at={at} />}
    </div>
  ));
  if (breaker === 'open')
    return <Figure name="Breaker" value={<Status tone="bad">open</Status>} note={note} />;
  if (breaker === 'half_open')
    return <Figure name="Breaker" value={<Status tone="warn">half open</Status>} note={note} />;
  const rule = `opens for a handler at ${Math.round(ratio * 100)}% failures of ${min} calls`;
  return <Figure name="Breaker" value="closed" note={rule} />;
}
