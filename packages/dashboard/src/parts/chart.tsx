import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useIsDark } from '../style/theme.js';
import { Panel } from './page.js';
import './chart.css';

export interface Series {
  label: string;
  /** One per time; null is unknown and leaves a gap. */
  values: readonly (number | null)[];
  /** Bars are sums over an interval, lines are readings. */
  kind?: 'line' | 'bars' | 'area';
  /** A colour that means something; others take the colours of the theme in turn. */
  tone?: 'good' | 'busy' | 'warn' | 'bad' | 'muted';
}

interface ChartProps {
  /** The accessible name of the chart. */
  label: string;
  /** Unix seconds, ascending. */
  times: readonly number[];
  series: readonly Series[];
  format: (value: number | null) => string;
  /** Formats the axis labels together; by default each one by `format`. */
  formatTicks?: ((values: readonly number[]) => string[]) | undefined;
  height?: number;
  /** The fixed top of the axis. */
  max?: number;
  /** The minimum top of the axis, so that tiny values do not look large. */
  minTop?: number;
  /** For bytes: steps are powers of two. */
  binary?: boolean;
}

/** A time series drawn with uPlot in the colors of the theme. */
export function Chart({
  label,
  times,
  series,
  format,
  formatTicks,
  height = 200,
  max,
  minTop,
  binary,
}: ChartProps) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const isDark = useIsDark();
  // The chart is rebuilt only when its shape changes; otherwise it gets new data.
  const shape = JSON.stringify([
    series.map(({ label, kind, tone }) => [label, kind, tone]),
    isDark,
    height,
    max,
    minTop,
    binary,
  ]);
  const data = [times, ...series.map(({ values }) => values)] as unknown as uPlot.AlignedData;
  const latest = useRef({ data, format });
  useEffect(() => {
    latest.current = { data, format };
    plot.current?.setData(data);
  });
  useEffect(() => {
    const element = holder.current!;
    const draw = () => {
      plot.current?.destroy();
      const size = { width: Math.max(element.clientWidth, 200), height };
      const text = (value: number | null) => latest.current.format(value);
      const options = optionsFor(element, series, {
        ...size,
        max,
        minTop,
        binary,
        text,
        formatTicks,
      });
      plot.current = new uPlot(options, latest.current.data, element);
    };
    draw();
    const observer = new ResizeObserver(() => {
      plot.current?.setSize({ width: Math.max(element.clientWidth, 200), height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shape]);
  return (
    <div className="chart">
      <div ref={holder} role="img" aria-label={summary(label, series, format)} />
      <ul className="chart-legend">
        {series.map((one, index) => (
          <li key={one.label}>
            <span
              className={`chart-key chart-key-${one.tone ?? (index % 6) + 1}`}
              aria-hidden="true"
            />
            {one.label} <span className="muted">latest {format(one.values.at(-1) ?? null)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface Drawing {
  width: number;
  height: number;
  max: number | undefined;
  minTop: number | undefined;
  binary: boolean | undefined;
  text: (value: number | null) => string;
  formatTicks: ChartProps['formatTicks'];
}

function optionsFor(
  element: HTMLElement,
  series: readonly Series[],
  { width, height, max, minTop = 1e-6, binary, text, formatTicks }: Drawing,
): uPlot.Options {
  const colour = colours(element);
  const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 } };
  return {
    width,
    height,
    padding: [8, 28, 0, 0],
    legend: { show: false },
    cursor: { y: false },
    plugins: [tooltip(series, text)],
    scales: {
      x: { range: series.some(({ kind }) => kind === 'bars') ? padHalfStep : aroundSinglePoint },
      y: {
        range: (_plot, low, high) => [
          Math.min(low ?? 0, 0),
          max ?? Math.max((high ?? 0) * 1.04, minTop),
        ],
      },
    },
    axes: [
      { ...axis, ticks: { show: false }, space: 68, size: 40, values: timeTexts },
      {
        ...axis,
        ticks: { show: false },
        size: 60,
        values: (_plot, ticks) => withoutRepeats(formatTicks?.(ticks) ?? ticks.map(text)),
        ...(binary && { incrs: Array.from({ length: 50 }, (_, power) => 2 ** power) }),
      },
    ],
    series: [
      {},
      ...series.map(({ label, kind = 'line', tone }, index) => {
        const stroke = colour(tone ? `--${tone}` : `--series-${(index % 6) + 1}`);
        return {
          label,
          stroke,
          width: kind === 'bars' ? 0 : 1.75,
          points: kind === 'bars' ? { show: false } : { show: false, filter: pointsOf, size: 5 },
          ...(kind === 'bars' && { fill: stroke, paths: uPlot.paths.bars!({ size: [0.7, 40] }) }),
          ...(kind === 'area' && { fill: `color-mix(in srgb, ${stroke} 18%, transparent)` }),
        };
      }),
    ],
  };
}

/** A few readings are points too. Of many, those are that no line shows: it needs a neighbour. */
const pointsOf: uPlot.Series.Points.Filter = (plot, index) => {
  const isKnown = (at: number) => typeof plot.data[index]![at] === 'number';
  const known = [...plot.data[0].keys()].filter(isKnown);
  if (known.length <= maxPoints) return known;
  return known.filter((at) => !isKnown(at - 1) && !isKnown(at + 1));
};

const maxPoints = 40;

/** Blanks labels that repeat because the step is finer than the format. */
function withoutRepeats(texts: readonly string[]): string[] {
  return texts.map((one, index) => (one === texts[index - 1] ? '' : one));
}

/** With a single point uPlot would show a range of years. */
const aroundSinglePoint: uPlot.Scale.Range = (plot, low, high) => {
  const [only, second] = plot.data[0];
  if (only === undefined || second !== undefined) return [low ?? 0, high ?? 1];
  return [only - 30, only + 30];
};

/** Room for the first and the last bar, which are centered on their times. */
const padHalfStep: uPlot.Scale.Range = (plot, low, high) => {
  const times = plot.data[0];
  const step = times.length > 1 ? times[1]! - times[0]! : 86_400;
  return [(low ?? 0) - step / 2, (high ?? 1) + step / 2];
};

/** `14:05`, with the date below at the first label of a day. */
const timeTexts: uPlot.Axis.Values = (_plot, ticks, _axis, _space, step) => {
  const two = (value: number) => String(value).padStart(2, '0');
  let lastDay = '';
  return ticks.map((tick) => {
    const date = new Date(tick * 1000);
    const day = date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' });
    if (step >= 86_400) return day;
    const minute = `${two(date.getHours())}:${two(date.getMinutes())}`;
    const time = step < 60 ? `${minute}:${two(date.getSeconds())}` : minute;
    const isNew = day !== lastDay;
    lastDay = day;
    return isNew ? `${time}\n${day}` : time;
  });
};

/** Shows the values under the pointer. */
function tooltip(series: readonly Series[], text: Drawing['text']): uPlot.Plugin {
  let box: HTMLElement;
  return {
    hooks: {
      init: (plot) => {
        box = document.createElement('div');
        box.className = 'chart-tip';
        box.hidden = true;
        plot.over.append(box);
      },
      setCursor: (plot) => {
        const { idx, left = -1 } = plot.cursor;
        box.hidden = idx === null || idx === undefined || left < 0;
        if (box.hidden) return;
        const at = new Date(plot.data[0][idx!]! * 1000).toLocaleString(undefined, {
          dateStyle: 'medium',
          timeStyle: 'short',
        });
        const lines = series.map(
          ({ label }, index) => `${label} ${text(plot.data[index + 1]![idx!] ?? null)}`,
        );
        box.replaceChildren(...[at, ...lines].map(line));
        const isRight = left > plot.over.clientWidth / 2;
        box.style.left = isRight ? '' : `${left + 12}px`;
        box.style.right = isRight ? `${plot.over.clientWidth - left + 12}px` : '';
      },
    },
  };
}

function line(content: string): HTMLElement {
  const element = document.createElement('div');
  element.textContent = content;
  return element;
}

/** Resolves CSS variables of the theme to colors for the canvas. */
function colours(element: HTMLElement): (name: string) => string {
  const probe = document.createElement('span');
  element.append(probe);
  const found = new Map<string, string>();
  const tones = ['good', 'busy', 'warn', 'bad', 'muted', 'line'].map((name) => `--${name}`);
  for (const name of [...tones, ...[1, 2, 3, 4, 5, 6].map((n) => `--series-${n}`)]) {
    probe.style.color = `var(${name})`;
    found.set(name, getComputedStyle(probe).color);
  }
  probe.remove();
  return (name) => found.get(name)!;
}

type MetricChartProps = Omit<ChartProps, 'label'> & { title: string; label?: string };

/** A chart in a panel of its own. */
export function MetricChart({ title, label = title, ...chart }: MetricChartProps) {
  return (
    <Panel title={title}>
      <Chart label={label} {...chart} />
    </Panel>
  );
}

function summary(label: string, series: readonly Series[], format: ChartProps['format']): string {
  const parts = series.map(({ label, values }) => {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${label}: no data`;
    const max = known.reduce((high, value) => Math.max(high, value), -Infinity);
    return `${label}: latest ${format(values.at(-1) ?? null)}, max ${format(max)}`;
  });
  return `${label}. ${parts.join('. ')}`;
}
