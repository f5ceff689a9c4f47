import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { queries } from '../../api/queries.js';
import { Chart, MetricChart } from '../../parts/chart.js';
import { useChoice } from '../../parts/choice.js';
import { bytes, duration, percent, tokens } from '../../parts/format.js';
import { Figure, Page, Panel } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { DatabaseMetrics } from './database-metrics.js';
import { QueueMetrics } from './queue-metrics.js';
import { agentSeries, spaced, type AgentField } from './history.js';

type History = DaemonSchema<'MetricsHistory'>;

const windows = { '1h': '1 hour', '6h': '6 hours', '24h': '24 hours', '7d': '7 days' };
const parts = { agents: 'Machine and agents', queue: 'Queue', database: 'Database' };

/** Resource usage and throughput of daemon, queue server and database. */
export default function MetricsPage() {
  const [part, tabs] = useChoice('part', 'agents', 'Part', parts, true);
  const [window, windowChoice] = useChoice('range', '1h', 'Window', windows);
  return (
    <Page title="Metrics" actions={part === 'agents' && windowChoice}>
      {tabs}
      {part === 'agents' && <AgentMetrics window={window} />}
      {part === 'queue' && <QueueMetrics />}
      {part === 'database' && <DatabaseMetrics />}
    </Page>
  );
}

function AgentMetrics({ window }: { window: string }) {
  const history = useQuery({
    ...queries.metricsHistory(window),
    refetchInterval: 15_000,
    placeholderData: (before) => before,
  });
  return (
    <>
      <Now />
      <Loaded query={history} rows={8}>
        {(data) =>
          data.samples.length === 0 ? (
            <Empty title="No samples in this window.">
              The daemon records a sample every 15 seconds while the setting <code>metrics</code> is
              on.
            </Empty>
          ) : (
            <Charts history={data} />
          )
        }
      </Loaded>
    </>
  );
}

function Now() {
  const metrics = useQuery(queries.metrics());
  return (
    <Loaded query={metrics} rows={1}>
      {({ system, daemon, agents }) => (
        <div className="figures">
          <Figure
            name="CPU"
            value={percent(system.cpu_pct)}
            note={system.load === null ? 'of all cores' : `load ${system.load.toFixed(2)}`}
          />
          <Figure
            name="Memory"
            value={bytes(system.mem_used)}
            note={`of ${bytes(system.mem_total)}`}
          />
          <Figure name="Live agents" value={agents.length} />
          <Figure
            name="Daemon"
            value={bytes(daemon.rss)}
            note={`up ${duration(daemon.uptime_s * 1000)}`}
          />
          <Figure
            name="Event loop p99"
            value={daemon.event_loop_p99_ms === null ? '–' : duration(daemon.event_loop_p99_ms)}
          />
        </div>
      )}
    </Loaded>
  );
}

const agentCharts: readonly { title: string; field: AgentField; format: typeof tokens }[] = [
  { title: 'Context by agent', field: 'context_tokens', format: tokens },
  { title: 'CPU by agent (100% is one core)', field: 'cpu_pct', format: percent },
  { title: 'Memory by agent', field: 'rss', format: bytes },
];

/** Minimum axis tops: smaller differences are noise. */
const minTopOf: Readonly<Record<AgentField, number>> = {
  context_tokens: 1000,
  cpu_pct: 5,
  rss: 2 ** 20,
};

function Charts({ history }: { history: History }) {
  const { data: sessions } = useQuery(queries.sessions());
  const names = useMemo(() => new Map(sessions?.map(({ id, name }) => [id, name])), [sessions]);
  const samples = useMemo(() => spaced(history), [history]);
  const times = samples.map(({ time }) => time);
  return (
    <div className="columns">
      <MetricChart
        title="Machine CPU"
        times={times}
        max={100}
        series={[
          {
            label: 'CPU',
            kind: 'area',
            values: samples.map(({ sample }) => sample?.system.cpu_pct ?? null),
          },
        ]}
        format={percent}
      />
      <MetricChart
        title="Machine memory"
        times={times}
        max={history.samples.at(-1)!.system.mem_total}
        series={[
          {
            label: 'Used',
            kind: 'area',
            values: samples.map(({ sample }) => sample?.system.mem_used ?? null),
          },
        ]}
        format={bytes}
        binary
      />
      {agentCharts.map(({ title, field, format }) => {
        const series = agentSeries(samples, field, names);
        return (
          <Panel key={field} title={title}>
            {series.length === 0 ? (
              <Empty title="No agent data in this window." />
            ) : (
              <Chart
                label={title}
                times={times}
                series={series}
                format={format}
                binary={field === 'rss'}
                minTop={minTopOf[field]}
              />
            )}
          </Panel>
        );
      })}
      <MetricChart
        title="Daemon memory"
        times={times}
        series={[
          { label: 'Memory', values: samples.map(({ sample }) => sample?.daemon.rss ?? null) },
        ]}
        format={bytes}
        binary
      />
    </div>
  );
}
