import { useQuery } from '@tanstack/react-query';
import { MetricChart } from '../../parts/chart.js';
import { count } from '../../parts/format.js';
import { Figure } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { databaseQueries, type NodeStatus } from '../database/api.js';
import { commitRates, withSample, type CommitSample } from './commit-rates.js';

// Lives as long as the tab: the database server has no history of its own.
let samples: readonly CommitSample[] = [];

/** Role, size and commit rate of the database. */
export function DatabaseMetrics() {
  const status = useQuery(databaseQueries.status());
  return (
    <Loaded query={status}>
      {(node) => <Content node={node} readAt={status.dataUpdatedAt} />}
    </Loaded>
  );
}

function Content({ node, readAt }: { node: NodeStatus; readAt: number }) {
  const records = node.collections.reduce((sum, { records: size }) => sum + size, 0);
  samples = withSample(samples, { time: readAt / 1000, seq: node.seq, records });
  const times = samples.map(({ time }) => time);
  const isLeader = node.role === 'leader';
  return (
    <>
      <div className="figures">
        <Figure
          name="Role"
          value={<Status tone={isLeader ? 'good' : 'busy'}>{node.role}</Status>}
          note={node.state}
        />
        <Figure name="Records" value={count(records)} />
        <Figure name="Commits" value={count(node.seq)} />
        <Figure name="Replication lag" value={count(node.lag)} note="commits" />
        <Figure name="Followers" value={count(node.followers.length)} />
      </div>
      <p className="muted">
        The charts start when this page is opened
        {samples.length < 2 && ' and appear with the second sample, in a few seconds'}. Prometheus
        can read the history from <code>/metrics</code> of the database.
      </p>
      <div className="columns">
        <MetricChart
          title="Commits per second"
          times={times}
          series={[{ label: 'commits', kind: 'area', values: commitRates(samples) }]}
          format={(value) => (value === null ? '–' : String(Math.round(value * 10) / 10))}
          minTop={1}
        />
        <MetricChart
          title="Records"
          times={times}
          series={[{ label: 'records', values: samples.map((one) => one.records) }]}
          format={count}
          minTop={4}
        />
      </div>
    </>
  );
}
