import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Gauge, Registry } from 'prom-client';
import type { Metric } from 'prom-client';

export type Labels<Label extends string> = Readonly<Record<Label, string>>;

export interface MetricShape<Label extends string> {
  /** Without the prefix: `tasks_submitted_total`. */
  name: string;
  help: string;
  labelNames?: readonly Label[];
}

export interface GaugeShape<Label extends string> extends MetricShape<Label> {
  /** Reads the value at scrape time. */
  read?: () => number;
}

export interface HistogramShape<Label extends string> extends MetricShape<Label> {
  /** Upper bounds, smallest first. */
  buckets: readonly number[];
}

/** Looking up a series by its labels is slow: hot paths hold on to the series. */
export interface Family<Label extends string, Series> {
  of(labels: Labels<Label>): Series;
}

export interface CounterSeries {
  inc(by?: number): void;
}

export interface HistogramSeries {
  observe(value: number): void;
}

export interface Counter<Label extends string> extends Family<Label, CounterSeries> {
  inc(labels: Labels<Label>, by?: number): void;
}

export interface Histogram<Label extends string> extends Family<Label, HistogramSeries> {
  observe(labels: Labels<Label>, value: number): void;
}

/** Prometheus metrics of one server. Every name starts with `millrace_<component>_`. */
export interface Metrics {
  readonly contentType: string;
  counter<Label extends string = never>(shape: MetricShape<Label>): Counter<Label>;
  gauge<Label extends string = never>(shape: GaugeShape<Label>): Gauge<Label>;
  histogram<Label extends string = never>(shape: HistogramShape<Label>): Histogram<Label>;
  /** The current values in the Prometheus text format. */
  text(): Promise<string>;
  /** Stops the process measurements. */
  close(): void;
}

/** Creates a separate registry, so that several servers can run in one process. */
export function createMetrics(component: string): Metrics {
  const registry = new Registry();
  const fullName = (name: string) => `millrace_${component}_${name}`;
  const metrics: Metrics = {
    contentType: registry.contentType,
    counter: (shape) => {
      const family = new SeriesFamily(shape.labelNames, () => new CounterCell());
      register(registry, fullName(shape.name), shape.help, 'counter', family);
      return {
        of: (labels) => family.of(labels),
        inc: (labels, by) => family.of(labels).inc(by),
      };
    },
    gauge: ({ name, help, labelNames = [], read }) =>
      new Gauge({
        name: fullName(name),
        help,
        labelNames,
        registers: [registry],
        ...(read && {
          collect() {
            this.set(read());
          },
        }),
      }),
    histogram: (shape) => {
      const { buckets } = shape;
      const family = new SeriesFamily(shape.labelNames, () => new HistogramCell(buckets));
      register(registry, fullName(shape.name), shape.help, 'histogram', family);
      return {
        of: (labels) => family.of(labels),
        observe: (labels, value) => family.of(labels).observe(value),
      };
    },
    text: () => registry.metrics(),
    close: () => stopMeasuring(),
  };
  const stopMeasuring = measureProcess(metrics);
  return metrics;
}

interface Reading {
  metricName: string;
  labels: Record<string, string>;
  value: number;
}

interface Cell {
  read(name: string, labels: Record<string, string>): Reading[];
}

// The counters and histograms of prom-client hash their labels on every call, which took 10% of
// the time of a request. Its registry and text format are still used.
class SeriesFamily<Label extends string, C extends Cell> {
  readonly #names: readonly Label[];
  readonly #newCell: () => C;
  readonly #cells = new Map<string, { labels: Record<string, string>; cell: C }>();

  constructor(names: readonly Label[] = [], newCell: () => C) {
    this.#names = names;
    this.#newCell = newCell;
    if (names.length === 0) this.of({} as Labels<Label>);
  }

  of(labels: Labels<Label>): C {
    let key = '';
    for (const name of this.#names) key += `${labels[name]}\0`;
    let entry = this.#cells.get(key);
    if (!entry) {
      const own = Object.fromEntries(this.#names.map((name) => [name, labels[name]]));
      entry = { labels: own, cell: this.#newCell() };
      this.#cells.set(key, entry);
    }
    return entry.cell;
  }

  read(name: string): Reading[] {
    return [...this.#cells.values()].flatMap(({ labels, cell }) => cell.read(name, labels));
  }

  reset(): void {
    this.#cells.clear();
  }
}

class CounterCell implements Cell, CounterSeries {
  #count = 0;

  inc(by = 1): void {
    if (!(by >= 0)) throw new RangeError(`A counter cannot be increased by ${by}`);
    this.#count += by;
  }

  read(metricName: string, labels: Record<string, string>): Reading[] {
    return [{ metricName, labels, value: this.#count }];
  }
}

class HistogramCell implements Cell, HistogramSeries {
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    if (!Number.isFinite(value)) throw new RangeError(`A histogram cannot observe ${value}`);
    let i = 0;
    while (i < this.#bounds.length && value > this.#bounds[i]!) i++;
    this.#counts[i]!++;
    this.#sum += value;
  }

  read(name: string, labels: Record<string, string>): Reading[] {
    let count = 0;
    const metricName = `${name}_bucket`;
    const buckets = [...this.#bounds, '+Inf'].map((bound, i) => {
      count += this.#counts[i]!;
      return { metricName, labels: { ...labels, le: String(bound) }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}

function register(
  registry: Registry,
  name: string,
  help: string,
  type: 'counter' | 'histogram',
  family: { read(name: string): Reading[]; reset(): void },
): void {
  if (registry.getSingleMetric(name)) throw new Error(`Metric ${name} is already registered`);
  registry.registerMetric({
    name,
    help,
    type,
    get: () => Promise.resolve({ name, help, type, aggregator: 'sum', values: family.read(name) }),
    reset: () => family.reset(),
  } as unknown as Metric);
}

function measureProcess(metrics: Metrics): () => void {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  metrics.gauge({
    name: 'process_event_loop_p99_seconds',
    help: '99th percentile of the event loop delay since the last scrape.',
    read: () => {
      const seconds = delay.percentile(99) / 1e9;
      delay.reset();
      return Number.isFinite(seconds) ? seconds : 0;
    },
  });
  metrics.gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of the process.',
    read: () => process.memoryUsage.rss(),
  });
  metrics.gauge({
    name: 'process_heap_used_bytes',
    help: 'JavaScript heap in use.',
    read: () => process.memoryUsage().heapUsed,
  });
  metrics.gauge({
    name: 'process_open_handles',
    help: 'Open sockets, timers, files and other resources.',
    read: () => process.getActiveResourcesInfo().length,
  });
  metrics.gauge({
    name: 'process_cpu_seconds',
    help: 'CPU time used since the start, user and system.',
    read: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  });
  return () => delay.disable();
}
