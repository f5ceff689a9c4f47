import { useQuery } from '@tanstack/react-query';
import { MetricChart, type Series } from '../../parts/chart.js';
import { Choice } from '../../parts/choice.js';
import { count, durationTicks, millis } from '../../parts/format.js';
import { useParam } from '../../parts/location.js';
import { Empty, Loaded } from '../../parts/states.js';
import { queueQueries, type QueueMetrics } from '../../queue/api.js';
import { sinceFirstTask, spacedPoints, type SpacedPoint } from './metrics-points.js';

type Range = '1h' | '6h' | '24h' | '7d' | '30d';

const ranges: readonly { value: Range; text: string }[] = [
  { value: '1h', text: '1 h' },
  { value: '6h', text: '6 h' },
  { value: '24h', text: '24 h' },
  { value: '7d', text: '7 d' },
  { value: '30d', text: '30 d' },
];
const rangeValues = ranges.map(({ value }) => value);

/** Depth, throughput and latency from the history of the server, over one time range. */
export function HistoryCharts({ queue }: { queue: string }) {
  const [range, setRange] = useParam<Range>('range', '1h', rangeValues);
  const metrics = useQuery({
    ...queueQueries.metrics(queue, range),
    placeholderData: (before) => before,
  });
  return (
    <>
      <Choice label="Time range" value={range} options={ranges} onChange={setRange} />
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
      <MetricChart
        title="Wait time"
        times={times}
        series={percentiles('wait_ms')}
        format={millis}
        formatTicks={durationTicks}
        minTop={10}
      />
      <MetricChart
        title="Run time"
        times={times}
        series={percentiles('run_ms')}
        format={millis}
        formatTicks={durationTicks}
        minTop={10}
      />
    </div>
  );
}

function rate(value: number | null): string {
  if (value === null) return '–';
  return value >= 100 ? count(Math.round(value)) : String(Math.round(value * 100) / 100);
}
