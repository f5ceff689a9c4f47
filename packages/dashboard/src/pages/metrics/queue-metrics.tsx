import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { Select } from '../../parts/controls.js';
import { count, duration } from '../../parts/format.js';
import { useIdParam } from '../../parts/location.js';
import { Figure } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { queueQueries, type QueueItem } from '../../queue/api.js';
import { HistoryCharts } from '../queues/history-charts.js';
import '../queues/queues.css';

/** Totals of all queues, and the history of one of them. */
export function QueueMetrics() {
  const queues = useQuery(queueQueries.all());
  return (
    <Loaded query={queues} empty={<Empty title="No queues yet." />}>
      {(list) => <Content list={list} />}
    </Loaded>
  );
}

function Content({ list }: { list: readonly QueueItem[] }) {
  const [wanted, setWanted] = useIdParam('queue');
  const sum = (field: 'pending' | 'in_flight' | 'dlq_depth') =>
    list.reduce((total, { summary }) => total + summary[field], 0);
  const waiting = list.filter(({ summary }) => summary.pending > 0);
  const oldest = Math.max(0, ...waiting.map(({ summary }) => summary.oldest_pending_age_ms));
  const busiest = list.toSorted((a, b) => b.summary.pending - a.summary.pending)[0]!.name;
  const shown = list.some(({ name }) => name === wanted) ? wanted : busiest;
  return (
    <>
      <div className="figures">
        <Figure name="Queues" value={count(list.length)} />
        <Figure name="Pending" value={count(sum('pending'))} />
        <Figure name="In flight" value={count(sum('in_flight'))} />
        <Figure name="Oldest due" value={waiting.length === 0 ? '–' : duration(oldest)} />
        <Figure name="Dead letters" value={count(sum('dlq_depth'))} />
      </div>
      <div className="row">
        <label className="row">
          Queue
          <Select
            className="queue-choice"
            value={shown}
            options={list.map(({ name }) => name)}
            onChange={setWanted}
          />
        </label>
        <Link href={`/queues/${shown}`} className="ellipsis">
          Open {shown}
        </Link>
      </div>
      <HistoryCharts key={shown} queue={shown} />
    </>
  );
}
