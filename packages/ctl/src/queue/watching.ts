import { systemClock } from '@millrace/kit/clock';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { durationOf, wholeNumber } from '../db/arguments.js';
import type { Tools } from '../tools.js';
import { Frame } from '../render/frame.js';
import type { QueueApi } from './api.js';
import { callbackCounter, type CallbackCounter } from './callback-counter.js';
import { rest } from './waiting.js';
import { longestCourse, watchScreen, type Look, type Watched } from './watch-screen.js';

export interface WatchFlags {
  interval?: string;
  count?: string;
  metricsUrl?: string;
}

const usualIntervalMs = 1_000;
const shortestIntervalMs = 100;

export async function watchQueues(
  api: QueueApi,
  names: readonly string[],
  flags: WatchFlags,
  tools: Tools,
): Promise<void> {
  const { terminal, lifecycle } = tools;
  const { out, json } = terminal;
  const intervalMs = durationOf(flags.interval, '--interval') ?? usualIntervalMs;
  if (intervalMs < shortestIntervalMs) throw new UsageError('--interval must be at least 100ms.');
  const isLive = json || out.isScreen;
  const looks = wholeNumber(flags.count, '--count') ?? (isLive ? Infinity : 1);
  const counter = callbackCounter(api.url, flags.metricsUrl, lifecycle.interrupted);
  const course = new Course();
  const frame = new Frame(out);
  for (let look = 1; look <= looks; look++) {
    const startedAt = systemClock.monotonic();
    try {
      const watched = course.add(await lookAt(api, names, counter), startedAt);
      if (json) out.write(`${JSON.stringify(lineOf(watched))}\n`);
      else frame.draw(watchScreen(watched, out, frame.rows));
    } catch (error) {
      // A server that is started again while somebody watches will be back.
      if (look === 1 || !(error instanceof Refusal) || !passing.has(error.code)) throw error;
      if (json) terminal.err.write(`${JSON.stringify(errorLine(error))}\n`);
      else frame.draw(`${out.paint('bad', 'No answer:')} ${error.detail}\n`);
    }
    if (look === looks) return;
    const tookMs = systemClock.monotonic() - startedAt;
    await rest(Math.max(0, intervalMs - tookMs), lifecycle.interrupted);
  }
}

const passing = new Set(['UNAVAILABLE', 'STORAGE_UNAVAILABLE', 'RATE_LIMITED']);

function errorLine({ code, detail }: Refusal) {
  return { error: { code, message: detail } };
}

async function lookAt(
  api: QueueApi,
  names: readonly string[],
  counter: CallbackCounter,
): Promise<Look[]> {
  const [queues, callbacks] = await Promise.all([countsOf(api, names), counter()]);
  return queues.map((queue) => ({
    ...queue,
    // A queue that has had no callback yet is not in the metrics.
    callbacks: callbacks && (callbacks.get(queue.name) ?? 0),
  }));
}

type Counted = Omit<Look, 'callbacks'>;

/** One call tells all of an admin's queues; others ask for each that they may see. */
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

/** Makes rates of looks, and remembers them for a while. */
export class Course {
  #before = new Map<string, { look: Look; at: number; course: number[] }>();

  add(looks: readonly Look[], at: number): Watched[] {
    const now = new Map<string, { look: Look; at: number; course: number[] }>();
    const watched = looks.map((look) => {
      const before = this.#before.get(look.name);
      const rate = before && rateOf(before.look, look, (at - before.at) / 1000);
      const isMeasured = look.callbacks !== undefined;
      const value = isMeasured ? rate : look.pending + look.inFlight;
      const course = [...(before?.course ?? []), ...(value === undefined ? [] : [value])];
      now.set(look.name, { look, at, course: course.slice(-longestCourse) });
      return { ...look, rate, course };
    });
    this.#before = now;
    return watched;
  }
}

function rateOf(before: Look, look: Look, seconds: number): number | undefined {
  if (seconds <= 0) return undefined;
  if (look.callbacks === undefined) {
    const grown = look.pending + look.inFlight - before.pending - before.inFlight;
    return grown / seconds;
  }
  // A server that was started again counts from 0.
  if (before.callbacks === undefined || look.callbacks < before.callbacks) return undefined;
  return (look.callbacks - before.callbacks) / seconds;
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
