import { useQuery } from '@tanstack/react-query';
import { MetricChart, type Series } from '../../parts/chart.js';
import { useChoice } from '../../parts/choice.js';
import { count, durationTicks, millis } from '../../parts/format.js';
import { Empty, Loaded } from '../../parts/states.js';
import { queueQueries, type QueueMetrics } from '../../queue/api.js';
import { sinceFirstTask, spacedPoints, type SpacedPoint } from './metrics-points.js';

const ranges = { '1h': '1 h', '6h': '6 h', '24h': '24 h', '7d': '7 d', '30d': '30 d' };

/** Depth, throughput and latency from the history of the server, over one time range. */
export function HistoryCharts({ queue }: { queue: string }) {
  const [range, choice] = useChoice('range', '1h', 'Time range', ranges);
  const metrics = useQuery({
    ...queueQueries.metrics(queue, range),
    placeholderData: (before) => before,
  });
  return (
    <>
      {choice}
      <Loaded query={metrics}>
        {(found) =>
          found.points.length === 0 ? (
            <Empty title="No history in this time range." />
          ) : (
            <Charts metrics={found} />
          )
        }
      </Loaded>
    </>
  );
}

function Charts({ metrics }: { metrics: QueueMetrics }) {
  const points = sinceFirstTask(spacedPoints(metrics));
  const times = points.map(({ time }) => time);
  const line = (
    label: string,
    read: (point: NonNullable<SpacedPoint['point']>) => number | null,
  ) => ({
    label,
    values: points.map(({ point }) => (point ? read(point) : null)),
  });
  const perSecond = (value: number) => value / metrics.step_s;
  const percentiles = (field: 'wait_ms' | 'run_ms'): Series[] =>
    (['p50', 'p95', 'p99'] as const).map((name) =>
      line(name, (point) => point[field]?.[name] ?? null),
    );
  return (
    <div className="columns queue-charts">
      <MetricChart
        title="Depth"
        label="Tasks in the queue"
        times={times}
        series={[
          { ...line('pending', ({ pending }) => pending), kind: 'area', tone: 'muted' },
          { ...line('in flight', ({ in_flight }) => in_flight), tone: 'busy' },
        ]}
        format={count}
        minTop={4}
      />
      <MetricChart
        title="Throughput per second"
        times={times}
        series={[
          { ...line('submitted', ({ submitted }) => perSecond(submitted)), tone: 'muted' },
          { ...line('succeeded', ({ succeeded }) => perSecond(succeeded)), tone: 'good' },
          { ...line('failed', ({ failed }) => perSecond(failed)), tone: 'warn' },
          { ...line('dead', ({ dead }) => perSecond(dead)), tone: 'bad' },
        ]}
        format={rate}
        minTop={1}
      />
      {(['wait_ms', 'run_ms'] as const).map((field) => (
        <MetricChart
          key={field}
          title={field === 'wait_ms' ? 'Wait time' : 'Run time'}
          times={times}
          series={percentiles(field)}
          format={millis}
          formatTicks={durationTicks}
          minTop={10}
        />
      ))}
    </div>
  );
}

function rate(value: number | null): string {
  if (value === null) return '–';
  return value >= 100 ? count(Math.round(value)) : String(Math.round(value * 100) / 100);
}
