import { ApiError } from '@millrace/client';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { useAction } from '../../parts/action.js';
import { count, duration } from '../../parts/format.js';
import { useIdParam } from '../../parts/location.js';
import { Figure, Page, Panel } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Failure, Loaded, Loading } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { toast } from '../../parts/toast.js';
import {
  probeCallback,
  queueQueries,
  setPaused,
  type QueueConfig,
  type QueueItem,
} from '../../queue/api.js';
import { ConfigView } from './config-view.js';
import { ageText } from './list.js';
import { rateText } from './rates.js';
import { QueueState } from './queue-state.js';
import { Depth } from './depth.js';
import { SubmitDialog } from './submit-dialog.js';
import { TaskLookup } from './task-lookup.js';
import { useHistory } from './use-history.js';

/** One queue: figures, actions, config. */
export function QueueDetail({ queue }: { queue: string }) {
  const queues = useQuery(queueQueries.all());
  const config = useQuery(queueQueries.config(queue));
  const history = useHistory(queues.data, queues.dataUpdatedAt);
  const [isSubmitting, setIsSubmitting] = useState(false);
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
      actions={item && <Actions item={item} onSubmit={() => setIsSubmitting(true)} />}
    >
      {queues.data && !item && !config.isError && <Loading rows={1} />}
      {queues.isError && !config.isError && (
        <Failure error={queues.error} onRetry={queues.refetch} />
      )}
      {item && (
        <Figures item={item} rate={rateText(history.rateOf(queue))}>
          <BreakerFigure config={config.data} phase={item.summary.breaker} />
        </Figures>
      )}
      {item && <Depth samples={history.of(queue)} />}
      <TaskLookup id={taskId} onLookup={setTaskId} />
      <Panel title="Config">
        <Loaded query={config}>{(found) => <ConfigView config={found} />}</Loaded>
      </Panel>
      {isSubmitting && (
        <SubmitDialog
          queue={queue}
          onClose={() => setIsSubmitting(false)}
          onSubmitted={(id) => {
            setIsSubmitting(false);
            setTaskId(id);
          }}
        />
      )}
    </Page>
  );
}

function Actions({ item: { name, summary }, onSubmit }: { item: QueueItem; onSubmit: () => void }) {
  const pause = useAction({
    run: (paused: boolean) => setPaused(name, paused),
    done: (_, paused) => (paused ? `Paused ${name}.` : `Resumed ${name}.`),
    refresh: ['queues', 'queue-config'],
  });
  useShortcut('n', 'Submit test task', onSubmit);
  useShortcut('p', 'Pause or resume delivery', () => pause.mutate(!summary.paused));
  const probe = useAction({
    run: () => probeCallback(name),
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
      <button
        type="button"
        disabled={pause.isPending}
        onClick={() => pause.mutate(!summary.paused)}
      >
        {summary.paused ? 'Resume' : 'Pause'}
      </button>
      <button type="button" disabled={probe.isPending} onClick={() => probe.mutate()}>
        Test callback
      </button>
      <button type="button" className="primary" onClick={onSubmit}>
        Submit test task
      </button>
    </>
  );
}

interface FiguresProps {
  item: QueueItem;
  rate: string;
  children: ReactNode;
}

function Figures({ item: { name, summary }, rate, children }: FiguresProps) {
  const { pending, in_flight, dlq_depth } = summary;
  return (
    <div className="figures">
      <Figure name="State" value={<QueueState summary={summary} />} />
      <Figure name="Pending" value={count(pending)} note={rate !== '–' && `${rate} net change`} />
      <Figure name="In flight" value={count(in_flight)} />
      <Figure name="Oldest pending" value={ageText(summary)} />
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
  phase: 'closed' | 'half_open' | 'open' | undefined;
}

function BreakerFigure({ config, phase }: BreakerFigureProps) {
  if (!config) return <Figure name="Breaker" value="–" />;
  const { enabled, failure_ratio: ratio, min_requests: min } = config.circuit_breaker;
  if (!enabled) return <Figure name="Breaker" value="off" />;
  if (phase === 'open') return <Figure name="Breaker" value={<Status tone="bad">open</Status>} />;
  if (phase === 'half_open')
    return <Figure name="Breaker" value={<Status tone="warn">half open</Status>} />;
  const note = `opens at ${Math.round(ratio * 100)}% failures of ${min} calls`;
  return <Figure name="Breaker" value="closed" note={note} />;
}
