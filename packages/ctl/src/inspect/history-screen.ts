import type { DaemonSchema } from '@millrace/contract/daemon';
import { humanBytes, humanDuration } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { sparkline, rightAligned } from '../render/figures.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { delayText, percent } from './resources-screen.js';

type History = DaemonSchema<'MetricsHistory'>;
type Metrics = DaemonSchema<'Metrics'>;

const narrowCells = 30;
const wideCells = 80;
const wideColumns = 130;
/** Maximum number of agents shown, by usage. */
const maxAgents = 10;

/** Width of a chart for a terminal width. */
export function chartCells(columns: number): number {
  return columns >= wideColumns ? wideCells : narrowCells;
}

/** One figure over time; null where it is unknown. */
interface Course {
  name: string;
  values: (number | null)[];
  show: (value: number) => string;
}

/** Recorded usage: a small chart for each figure. */
export function historyScreen(
  { samples, step_s: stepS }: History,
  names: ReadonlyMap<string, string>,
  now: number,
  sheet: Sheet,
): string {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last) {
    return asTyped(
      'Nothing was recorded in this time. Check with `ctl config metrics` that recording is on.\n',
    );
  }
  const slots = slotsOf(samples, stepS, chartCells(sheet.columns));
  const step = humanDuration(stepS * 1000);
  const lastMs = Date.parse(last.taken_at);
  // The chart may be shorter than the samples, and the last bar is still being recorded.
  const from = Math.max(Date.parse(first.taken_at), lastMs - (slots.length - 1) * stepS * 1000);
  const to = Math.max(lastMs, Math.min(lastMs + stepS * 1000, now));
  const span = `${minute(from)} to ${minute(to)} UTC, ${step} a bar`;
  const machine = table('MACHINE', machineCourses(slots), sheet);
  const agents = table('AGENT CPU', agentCourses(slots, names), sheet);
  return [`${sheet.paint('dim', span)}\n`, machine, agents]
    .filter((part) => part !== '')
    .join('\n');
}

type Slot = Metrics | undefined;

/** The latest time slots, each with its sample or none. */
function slotsOf(samples: readonly Metrics[], stepS: number, most: number): Slot[] {
  const slotOf = ({ taken_at: at }: Metrics) => Math.floor(Date.parse(at) / (stepS * 1000));
  const bySlot = new Map(samples.map((sample) => [slotOf(sample), sample]));
  const last = slotOf(samples.at(-1)!);
  const first = Math.max(slotOf(samples[0]!), last - most + 1);
  return Array.from({ length: last - first + 1 }, (_, at) => bySlot.get(first + at));
}

function machineCourses(slots: readonly Slot[]): Course[] {
  const course = (
    name: string,
    value: (sample: Metrics) => number | null,
    show: (value: number) => string,
  ): Course => ({ name, values: slots.map((slot) => (slot ? value(slot) : null)), show });
  return [
    course('CPU', ({ system }) => system.cpu_pct, percent),
    course('Memory', ({ system }) => system.mem_used, humanBytes),
    course(
      'Load',
      ({ system }) => system.load,
      (load) => String(Math.round(load * 100) / 100),
    ),
    course('Daemon', ({ daemon }) => daemon.rss, humanBytes),
    course('Event loop', ({ daemon }) => daemon.event_loop_p99_ms, delayText),
  ];
}

function agentCourses(slots: readonly Slot[], names: ReadonlyMap<string, string>): Course[] {
  const ids = new Set(slots.flatMap((slot) => slot?.agents.map(({ id }) => id) ?? []));
  const courses = [...ids].map((id): Course => ({
    name: names.get(id) ?? id,
    values: slots.map((slot) => slot?.agents.find((agent) => agent.id === id)?.cpu_pct ?? null),
    show: percent,
  }));
  const total = ({ values }: Course) =>
    values.reduce((sum: number, value) => sum + (value ?? 0), 0);
  return courses.toSorted((one, other) => total(other) - total(one)).slice(0, maxAgents);
}

function table(title: string, courses: readonly Course[], sheet: Sheet): string {
  if (courses.length === 0) return '';
  const known = courses.map(({ values }) => values.filter((value) => value !== null));
  const column = (figure: (values: number[]) => number) =>
    rightAligned(
      courses.map(({ show }, at) => (known[at]!.length === 0 ? '-' : show(figure(known[at]!)))),
    );
  const least = column((values) => Math.min(...values));
  const mean = column((values) => values.reduce((sum, value) => sum + value, 0) / values.length);
  const most = column((values) => Math.max(...values));
  const rows = courses.map(({ name, values }, at): Cell[] => [
    name,
    { text: chartOf(values), tone: 'ok' },
    least[at]!,
    mean[at]!,
    most[at]!,
  ]);
  const titles = [title, '', 'MIN', 'MEAN', 'MAX'];
  return renderTable(titles, rows, sheet);
}

/** Bars from 0 to the maximum; a gap where the value is unknown. */
function chartOf(values: readonly (number | null)[]): string {
  const known = values.map((value) => value ?? 0);
  const bars = sparkline(known, values.length);
  return values.map((value, at) => (value === null ? ' ' : bars.charAt(at))).join('');
}

function minute(time: number): string {
  return new Date(time).toISOString().slice(0, 16).replace('T', ' ');
}
