import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import { now } from '../../parts/clock.js';
import { count, duration } from '../../parts/format.js';
import { useIsNarrow } from '../../parts/use-is-narrow.js';
import { navigate, useTextParam } from '../../parts/location.js';
import { Figure, Page } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Loaded } from '../../parts/states.js';
import { VirtualTable, type Column } from '../../parts/virtual-table.js';
import { queueQueries, type QueueItem } from '../../queue/api.js';
import { ConfigDialog } from './config-dialog.js';
import { Sparkline } from './sparkline.js';
import { QueueState } from './queue-state.js';

export function QueueList() {
  const queues = useQuery(queueQueries.all());
  const search = useRef<HTMLInputElement>(null);
  useShortcut('/', 'Search queues', () => search.current?.focus());
  const [isCreating, setIsCreating] = useState(false);
  useShortcut('n', 'New queue', () => setIsCreating(true));
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
          <button type="button" className="primary" onClick={() => setIsCreating(true)}>
            New queue
          </button>
        </>
      }
    >
      <Loaded query={queues}>
        {(list) => (list.length === 0 ? <NoQueues /> : <Table {...{ list, sought }} />)}
      </Loaded>
      {isCreating && (
        <ConfigDialog
          onClose={() => setIsCreating(false)}
          onSaved={(name) => navigate(`/queues/${name}`)}
        />
      )}
    </Page>
  );
}

function NoQueues() {
  return (
    <Empty title="No queues yet.">
      Create one here, or from a config file: <code>ctl queue config set mail mail.json</code>
    </Empty>
  );
}

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

const lastHour: Column<QueueItem> = {
  id: 'last-hour',
  header: 'Last hour',
  width: '7rem',
  wideOnly: true,
  cell: ({ name }) => <Sparkline queue={name} />,
};

function columnsFor(isNarrow: boolean): Column<QueueItem>[] {
  return [
    {
      id: 'name',
      header: 'Queue',
      width: 'minmax(0, 3fr)',
      cell: ({ name, summary }) => (
        <>
          <Link href={`/queues/${name}`} className="row-link">
            {name}
          </Link>
          {isNarrow && (
            <div>
              <QueueState summary={summary} />
            </div>
          )}
        </>
      ),
    },
    {
      id: 'state',
      header: 'State',
      width: '6.5rem',
      wideOnly: true,
      cell: ({ summary }) => <QueueState summary={summary} />,
    },
    {
      id: 'pending',
      header: 'Pending',
      width: '5rem',
      numeric: true,
      cell: ({ summary }) => count(summary.pending),
    },
    {
      id: 'workers',
      header: 'Workers',
      width: '5rem',
      numeric: true,
      wideOnly: true,
      cell: ({ name, summary }) => <WorkerCount queue={name} isPull={!summary.callback_url} />,
    },
    lastHour,
    {
      id: 'in-flight',
      header: 'In flight',
      width: '5rem',
      numeric: true,
      wideOnly: true,
      cell: ({ summary }) => count(summary.in_flight),
    },
    {
      id: 'oldest',
      header: 'Oldest',
      width: '6rem',
      numeric: true,
      wideOnly: true,
      cell: ({ summary }) => ageText(summary),
    },
    {
      id: 'dead',
      header: 'Dead',
      width: isNarrow ? '3.5rem' : '4.5rem',
      numeric: true,
      cell: ({ name, summary }) => <DeadCount name={name} depth={summary.dlq_depth} />,
    },
    {
      id: 'callback',
      header: 'Callback',
      width: 'minmax(0, 2fr)',
      wideOnly: true,
      cell: ({ summary }) => (
        <span className="muted" title={summary.callback_url ?? undefined}>
          {summary.callback_url ?? 'pull'}
        </span>
      ),
    },
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
