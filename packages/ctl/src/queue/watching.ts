import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import type { Flags, Tools } from '../base/tools.js';
import { refresh } from '../base/watching.js';
import { queueApi, type QueueApi, type QueueFlags } from './api.js';
import { checkedUrl } from '../base/urls.js';
import { locateMetrics, defaultMetricsUrl } from './locate.js';
import type { Value } from '@millrace/contract/lists';
import * as queueLists from '@millrace/contract/lists/queue';
import { humanCount } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { cellOf } from '../base/list-text.js';
import { sparkline } from '../render/figures.js';
import { exchange, isAbort, reasonOf } from '../base/exchange.js';

type WatchFlags = QueueFlags & Flags<'interval count metricsUrl'>;

export async function watchQueues(
  names: readonly string[],
  flags: WatchFlags,
  tools: Tools,
): Promise<void> {
  const api = queueApi(flags, tools);
  const { terminal, lifecycle } = tools;
  const { out, json } = terminal;
  const metricsUrl = locateMetrics(api.url, terminal.env);
  const counter = callbackCounter(metricsUrl, flags.metricsUrl, lifecycle.interrupted);
  const course = new Course();
  await refresh(flags, { everyMs: 1_000 }, tools, async (frame) => {
    const startedAt = systemClock.monotonic();
    const watched = course.add(await takeSample(api, names, counter), startedAt);
    if (json) out.write(`${JSON.stringify(lineOf(watched))}\n`);
    else frame.draw(watchScreen(watched, out, frame.rows));
  });
}

async function takeSample(
  api: QueueApi,
  names: readonly string[],
  counter: CallbackCounter,
): Promise<Sample[]> {
  const [queues, callbacks] = await Promise.all([countsOf(api, names), counter()]);
  return queues.map((queue) => ({
    ...queue,
    // A queue without callbacks so far is not in the metrics.
    callbacks: callbacks && (callbacks.get(queue.name) ?? 0),
  }));
}

type Counted = Omit<Sample, 'callbacks'>;

/** An admin lists all queues in one call; others read each queue by name. */
async function countsOf(api: QueueApi, names: readonly string[]): Promise<Counted[]> {
  try {
    const { body: queues } = await api.call('listQueues');
    const listed = new Map(queues.map(({ name, summary }) => [name, summary]));
    const wanted = names.length === 0 ? [...listed.keys()] : names;
    return await Promise.all(
      wanted.map(async (name) => {
        const summary = listed.get(name);
        return summary ? counted(name, summary, summary.paused) : statsOf(api, name);
      }),
    );
  } catch (error) {
    const isMine = names.length > 0 && error instanceof Refusal && error.code === 'FORBIDDEN';
    if (!isMine) throw error;
    return Promise.all(names.map((name) => statsOf(api, name)));
  }
}

async function statsOf(api: QueueApi, queue: string): Promise<Counted> {
  const { body } = await api.call('getStats', { queue });
  return counted(queue, body, undefined);
}

function counted(
  name: string,
  counts: { pending: number; in_flight: number; dlq_depth: number; oldest_pending_age_ms: number },
  paused: boolean | undefined,
): Counted {
  return {
    name,
    pending: counts.pending,
    inFlight: counts.in_flight,
    dead: counts.dlq_depth,
    oldestMs: counts.oldest_pending_age_ms,
    paused,
  };
}

/** Computes rates from samples, and remembers them. */
export class Course {
  #before = new Map<string, { sample: Sample; at: number; course: number[] }>();

  add(samples: readonly Sample[], at: number): Watched[] {
    const now = new Map<string, { sample: Sample; at: number; course: number[] }>();
    const watched = samples.map((sample) => {
      const before = this.#before.get(sample.name);
      const rate = before && rateOf(before.sample, sample, (at - before.at) / 1000);
      const isMeasured = sample.callbacks !== undefined;
      const value = isMeasured ? rate : sample.pending + sample.inFlight;
      const course = [...(before?.course ?? []), ...(value === undefined ? [] : [value])];
      now.set(sample.name, { sample, at, course: course.slice(-maxSamples) });
      return { ...sample, rate, course };
    });
    this.#before = now;
    return watched;
  }
}

function rateOf(before: Sample, sample: Sample, seconds: number): number | undefined {
  if (seconds <= 0) return undefined;
  if (sample.callbacks === undefined) {
    const grown = sample.pending + sample.inFlight - before.pending - before.inFlight;
    return grown / seconds;
  }
  // A restarted server counts from 0.
  if (before.callbacks === undefined || sample.callbacks < before.callbacks) return undefined;
  return (sample.callbacks - before.callbacks) / seconds;
}

function lineOf(watched: readonly Watched[]) {
  return {
    at: new Date(systemClock.now()).toISOString(),
    queues: watched.map((queue) => ({
      name: queue.name,
      paused: queue.paused ?? null,
      pending: queue.pending,
      in_flight: queue.inFlight,
      dlq_depth: queue.dead,
      oldest_pending_age_ms: queue.oldestMs,
      callbacks_per_second: queue.callbacks === undefined ? null : (queue.rate ?? null),
      backlog_growth_per_second: queue.callbacks === undefined ? (queue.rate ?? null) : null,
    })),
  };
}

/** One sample of one queue. */
export interface Sample {
  readonly name: string;
  readonly pending: number;
  readonly inFlight: number;
  readonly dead: number;
  readonly oldestMs: number;
  /** Undefined: unknown to a caller who is not its admin. */
  readonly paused: boolean | undefined;
  /** Callbacks since the server started; undefined without metrics. */
  readonly callbacks: number | undefined;
}

export interface Watched extends Sample {
  /** Per second; undefined for the first sample. */
  readonly rate: number | undefined;
  /** Rates of callbacks, or sizes of the backlog, newest last. */
  readonly course: readonly number[];
}

const narrowBars = 8;
const wideBars = 40;
const wideColumns = 120;
/** Maximum number of samples remembered. */
export const maxSamples = wideBars;

/** The table of queues, with at most `maxRows` rows. */
export function watchScreen(watched: readonly Watched[], sheet: Sheet, maxRows: number): string {
  if (watched.length === 0) return asTyped(`${queueLists.queues.empty}\n`);
  const isMeasured = watched.some(({ callbacks }) => callbacks !== undefined);
  const width = sheet.columns >= wideColumns ? wideBars : narrowBars;
  const titles = [
    'QUEUE',
    'STATE',
    'PENDING',
    'IN FLIGHT',
    'DLQ',
    'OLDEST',
    isMeasured ? 'CALLS/S' : 'Δ PENDING/S',
    isMeasured ? 'CALLS' : 'BACKLOG',
  ];
  const cell = (value: Value) => cellOf(value, 0, sheet);
  const rows = watched
    .slice(0, maxRows)
    .map((queue): Cell[] => [
      queue.name,
      queue.paused === undefined
        ? ''
        : cell(queueLists.queueState({ ...queue, paused: queue.paused })),
      queue.pending,
      queue.inFlight,
      queue.dead,
      cell({ ms: queue.oldestMs, none: '-' }),
      rateText(queue.rate, isMeasured),
      sparkline(queue.course, width),
    ]);
  const hidden = watched.length - rows.length;
  const more = hidden > 0 ? `and ${hidden} more: name the queues you want to see\n` : '';
  const columns = titles.map((title) => ({ title }));
  return renderTable(columns, rows, sheet) + more;
}

function rateText(rate: number | undefined, isMeasured: boolean): string {
  if (rate === undefined) return '-';
  const shown = Math.abs(rate) < 10 ? Math.round(rate * 10) / 10 : Math.round(rate);
  const text = Math.abs(shown) < 10 ? String(shown) : humanCount(shown);
  return !isMeasured && shown > 0 ? `+${text}` : text;
}

/** Number of callbacks by queue; undefined if the metrics are not available. */
type CallbackCounter = () => Promise<ReadonlyMap<string, number> | undefined>;

const patienceMs = 2_000;

/** Reads the server's metrics, which have their own listener: --metrics-url, or where it is. */
export function callbackCounter(
  located: string | undefined,
  metricsUrl: string | undefined,
  signal: AbortSignal,
): CallbackCounter {
  const given = metricsUrl && checkedUrl(metricsUrl, '--metrics-url', defaultMetricsUrl);
  const place = given ?? located;
  if (place === undefined) return () => Promise.resolve(undefined);
  const address = place.endsWith('/metrics') ? place : `${place}/metrics`;
  return async () => {
    try {
      const request = { method: 'GET', url: address, signal, patienceMs };
      const { status, text } = await exchange({ ...request, headers: { accept: 'text/plain' } });
      if (status === 200) return countsIn(text);
      throw new Error(`status ${status}`);
    } catch (error) {
      if (isAbort(error)) throw error;
      if (given) throw noMetrics(address, error);
      // Metrics may be turned off.
      return undefined;
    }
  };
}

function noMetrics(address: string, error: unknown): Refusal {
  return new Refusal(
    'UNAVAILABLE',
    `no metrics at ${address} (${reasonOf(error)}). Use the address that \`ctl queue ` +
      'serve` prints for its listener "metrics".',
    { cause: error },
  );
}

/** Adds up the outcomes of each queue. Names of queues need no escaping. */
export function countsIn(text: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const [, labels = '', value = ''] of text.matchAll(
    /^millrace_queue_deliveries_total\{([^}]*)\} (\S+)/gm,
  )) {
    const queue = /(?:^|,)queue="([^"]*)"/.exec(labels)?.[1];
    if (queue !== undefined) counts.set(queue, (counts.get(queue) ?? 0) + Number(value));
  }
  return counts;
}
