import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef } from 'react';
import { Link } from 'wouter';
import { now } from '../../parts/clock.js';
import { DialogButton } from '../../parts/controls.js';
import { count, duration } from '../../parts/format.js';
import { useIsNarrow } from '../../parts/use-is-narrow.js';
import { navigate, useTextParam } from '../../parts/location.js';
import { Figure, Page } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Loaded } from '../../parts/states.js';
import { column, VirtualTable, type Column } from '../../parts/virtual-table.js';
import { queueQueries, type QueueItem } from '../../queue/api.js';
import { ConfigDialog } from './config-dialog.js';
import { Sparkline } from './sparkline.js';
import { QueueState } from './queue-state.js';

export function QueueList() {
  const queues = useQuery(queueQueries.all());
  const search = useRef<HTMLInputElement>(null);
  useShortcut('/', 'Search queues', () => search.current?.focus());
  const [sought, setSought] = useTextParam('q');
  return (
    <Page
      title="Queues"
      actions={
        <>
          <input
            ref={search}
            type="search"
            aria-label="Search queues"
            placeholder="Search queues"
            value={sought}
            onChange={(event) => setSought(event.target.value)}
          />
          <DialogButton className="primary" label="New queue" shortcut="n">
            {(onClose) => (
              <ConfigDialog onClose={onClose} onSaved={(name) => navigate(`/queues/${name}`)} />
            )}
          </DialogButton>
        </>
      }
    >
      <Loaded query={queues} empty={noQueues}>
        {(list) => <Table {...{ list, sought }} />}
      </Loaded>
    </Page>
  );
}

const noQueues = (
  <Empty title="No queues yet.">
    Create one here, or from a config file: <code>ctl queue config set mail mail.json</code>
  </Empty>
);

interface TableProps {
  list: readonly QueueItem[];
  sought: string;
}

function Table({ list, sought }: TableProps) {
  const shown = useMemo(() => list.filter(({ name }) => name.includes(sought)), [list, sought]);
  const columns = columnsFor(useIsNarrow());
  return (
    <>
      <Totals list={list} />
      {shown.length === 0 ? (
        <Empty title={`No queue matches “${sought}”.`} />
      ) : (
        <VirtualTable label="Queues" columns={columns} rows={shown} rowKey={({ name }) => name} />
      )}
    </>
  );
}

function Totals({ list }: { list: readonly QueueItem[] }) {
  const sum = (field: 'pending' | 'delayed' | 'in_flight' | 'dlq_depth') =>
    list.reduce((total, { summary }) => total + (summary[field] ?? 0), 0);
  const paused = list.filter(({ summary }) => summary.paused).length;
  const oldest = Math.max(...list.map(({ summary }) => summary.oldest_pending_age_ms));
  return (
    <div className="figures">
      <Figure name="Queues" value={count(list.length)} />
      <Figure name="Paused" value={count(paused)} />
      <Figure
        name="Pending"
        value={count(sum('pending'))}
        note={sum('delayed') > 0 && `${count(sum('delayed'))} not due yet`}
      />
      <Figure name="In flight" value={count(sum('in_flight'))} />
      <Figure name="Oldest due" value={oldest === 0 ? '–' : duration(oldest)} />
      <Figure name="Dead letters" value={count(sum('dlq_depth'))} />
    </div>
  );
}

function columnsFor(isNarrow: boolean): Column<QueueItem>[] {
  const wideOnly = true;
  const numeric = true;
  const name = (item: QueueItem) => (
    <>
      <Link href={`/queues/${item.name}`} className="row-link">
        {item.name}
      </Link>
      {isNarrow && (
        <div>
          <QueueState summary={item.summary} />
        </div>
      )}
    </>
  );
  const callback = ({ summary: { callback_url: url } }: QueueItem) => (
    <span className="muted" title={url ?? undefined}>
      {url ?? 'pull'}
    </span>
  );
  return [
    column('Queue', 'minmax(0, 3fr)', name),
    column('State', '6.5rem', ({ summary }) => <QueueState summary={summary} />, { wideOnly }),
    column('Pending', '5rem', ({ summary }) => count(summary.pending), { numeric }),
    column(
      'Workers',
      '5rem',
      (item) => <WorkerCount queue={item.name} isPull={!item.summary.callback_url} />,
      { numeric, wideOnly },
    ),
    column('Last hour', '7rem', (item) => <Sparkline queue={item.name} />, { wideOnly }),
    column('In flight', '5rem', (item) => count(item.summary.in_flight), { numeric, wideOnly }),
    column('Oldest', '6rem', (item) => ageText(item.summary), { numeric, wideOnly }),
    column(
      'Dead',
      isNarrow ? '3.5rem' : '4.5rem',
      (item) => <DeadCount name={item.name} depth={item.summary.dlq_depth} />,
      { numeric },
    ),
    column('Callback', 'minmax(0, 2fr)', callback, { wideOnly }),
  ];
}

/** Workers seen in the last minute; a callback has none. */
function WorkerCount({ queue, isPull }: { queue: string; isPull: boolean }) {
  const { data } = useQuery({ ...queueQueries.workers(queue), enabled: isPull });
  if (!isPull || !data) return <span className="muted">–</span>;
  const seen = data.filter(({ last_seen_at: at }) => Date.parse(at) > now() - 60_000);
  return <>{count(seen.length)}</>;
}

function DeadCount({ name, depth }: { name: string; depth: number }) {
  if (depth === 0) return <span className="muted">0</span>;
  return (
    <Link
      href={`/dead-letters/${name}`}
      className="over-link queue-dead"
      aria-label={`${depth} dead letters of ${name}`}
    >
      {count(depth)}
    </Link>
  );
}

export function ageText(summary: QueueItem['summary']): string {
  const { pending, delayed = 0, oldest_pending_age_ms: age } = summary;
  return pending === delayed ? '–' : duration(age);
}
