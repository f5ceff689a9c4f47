import type { Server } from 'node:http';
import type { Clock } from '../clock.js';
import { messageOf } from '../errors.js';
import type { Log } from '../log.js';
import type { HttpApp } from './app.js';
import type { HttpServer } from './http-server.js';

export interface DrainOptions {
  clock: Clock;
  /** What is still open after this long is cut. */
  deadlineMs: number;
  /** Cuts it sooner. */
  signal?: AbortSignal;
}

const idleCheckMs = 20;
const partingStepMs = 10;
const partingSteps = 20;

/**
 * Stops a server gently: requests under way are finished, those that are on their way are answered
 * with the end of their connection, open-ended streams are told to end, then no new connections,
 * and idle ones closed. Returns false when something had to be cut at the deadline.
 */
export async function drainHttp(app: HttpApp, options: DrainOptions): Promise<boolean> {
  const { clock, deadlineMs, signal } = options;
  const { server } = app;
  app.beginDrain();
  const endsAt = clock.monotonic() + deadlineMs;
  await part(server.node, options);
  const timeUp = new AbortController();
  const deadline = clock.after(Math.max(0, endsAt - clock.monotonic()), () => timeUp.abort());
  const cut = signal ? AbortSignal.any([signal, timeUp.signal]) : timeUp.signal;
  const isGentle = await closeGently(server, clock, cut);
  deadline.cancel();
  return isGentle;
}

/**
 * Stops accepting, closes connections as they turn idle, and cuts the others when `cut` is
 * aborted. Returns false when some had to be cut.
 */
export async function closeGently(
  server: HttpServer,
  clock: Clock,
  cut: AbortSignal,
): Promise<boolean> {
  server.isDraining = true;
  let isGentle = true;
  const cutAll = () => {
    isGentle = false;
    server.closeAll();
  };
  const closed = server.close();
  // A connection that was busy when the server closed turns idle later.
  let check = clock.after(0, function closeIdle() {
    server.closeIdle();
    check = clock.after(idleCheckMs, closeIdle);
  });
  if (cut.aborted) cutAll();
  cut.addEventListener('abort', cutAll, { once: true });
  try {
    await closed;
  } finally {
    check.cancel();
    cut.removeEventListener('abort', cutAll);
  }
  return isGentle;
}

/**
 * Waits a moment before idle connections are closed: a client that asks again and again has sent
 * its next request before it can know, and would see it go unanswered. By steps, so that what has
 * arrived is read even where the process was held up.
 */
async function part(server: Server, { clock, deadlineMs, signal }: DrainOptions): Promise<void> {
  const most = Math.min(partingSteps, Math.floor(deadlineMs / partingStepMs / 2));
  for (let step = 0; step < most && !signal?.aborted; step++) {
    if ((await connectionsOf(server)) === 0) return;
    await clock.sleep(partingStepMs);
  }
}

function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}

/** One thing to do before the process ends. Steps run in order. */
export interface DrainStep {
  name: string;
  /** `signal` is aborted when the time for all steps is over. */
  run: (signal: AbortSignal) => unknown;
}

export interface SignalSource {
  on(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
  removeListener(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown;
  exit(code: number): void;
}

export interface ServeOptions {
  clock: Clock;
  log: Log;
  /** The time that all steps have together. */
  deadlineMs: number;
  steps: readonly DrainStep[];
  /** The process; another one in tests. */
  signals?: SignalSource;
}

const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Waits for SIGTERM or SIGINT, then runs the steps. Resolves with the exit code: 0 when all went
 * well, 1 when a step failed or the time ran out. A second signal ends the process at once.
 */
export async function serveUntilSignal(options: ServeOptions): Promise<number> {
  const { log, signals = process } = options;
  let firstSignal: ((name: string) => void) | undefined;
  const waiting = new Promise<string>((resolve) => (firstSignal = resolve));
  const receive = (name: keyof typeof exitCodes) => () => {
    if (firstSignal === undefined) {
      log.warn({ signal: name }, 'second signal, stopping at once');
      signals.exit(exitCodes[name]);
      return;
    }
    firstSignal(name);
    firstSignal = undefined;
  };
  const onTerm = receive('SIGTERM');
  const onInt = receive('SIGINT');
  signals.on('SIGTERM', onTerm);
  signals.on('SIGINT', onInt);
  // A process that only waits for a signal has nothing else to keep it alive.
  const alive = setInterval(() => undefined, 2 ** 30);
  try {
    const name = await waiting;
    log.info({ signal: name }, 'draining');
    return await runSteps(options);
  } finally {
    clearInterval(alive);
    signals.removeListener('SIGTERM', onTerm);
    signals.removeListener('SIGINT', onInt);
  }
}

async function runSteps({ clock, log, deadlineMs, steps }: ServeOptions): Promise<number> {
  const controller = new AbortController();
  const { signal } = controller;
  const timeUp = new Promise<'time is up'>((resolve) => {
    signal.addEventListener('abort', () => resolve('time is up'), { once: true });
  });
  const deadline = clock.after(deadlineMs, () => controller.abort());
  let exitCode = 0;
  for (const step of steps) {
    try {
      const outcome = await Promise.race([Promise.resolve(step.run(signal)), timeUp]);
      if (outcome !== 'time is up') continue;
      log.warn({ step: step.name, deadline_ms: deadlineMs }, 'a drain step did not end in time');
    } catch (error) {
      log.error({ step: step.name, err: error }, `a drain step failed: ${messageOf(error)}`);
    }
    exitCode = 1;
  }
  deadline.cancel();
  if (exitCode === 0) log.info({}, 'drained');
  return exitCode;
}
