import type { Server } from 'node:http';
import { type Clock, systemClock } from '../base/clock-and-random.js';
import { type Log, createLog, logLevelFrom, type LogLevel, type RootLog } from '../base/log.js';
import type { HttpApp } from './app.js';
import type { HttpServer } from './http-server.js';
import type { ConfigInputs } from '../config/index.js';
import { announce } from './listen.js';

export interface DrainOptions {
  clock: Clock;
  /** Connections still open after this time are destroyed. */
  deadlineMs: number;
  /** Destroys them earlier. */
  signal?: AbortSignal;
}

const idleCheckMs = 20;
const lastRequestsStepMs = 10;
const lastRequestsSteps = 20;

/**
 * Graceful shutdown: requests in flight finish, every response closes its connection, event streams
 * end; then the server stops accepting and closes idle connections. Returns false when connections
 * had to be destroyed at the deadline.
 */
export async function drainHttp(app: HttpApp, options: DrainOptions): Promise<boolean> {
  const { clock, deadlineMs, signal } = options;
  const { server } = app;
  app.beginDrain();
  const endsAt = clock.monotonic() + deadlineMs;
  await awaitLastRequests(server.node, options);
  const timeUp = new AbortController();
  const deadline = clock.after(Math.max(0, endsAt - clock.monotonic()), () => timeUp.abort());
  const cut = signal ? AbortSignal.any([signal, timeUp.signal]) : timeUp.signal;
  const isGraceful = await closeGracefully(server, clock, cut);
  deadline.cancel();
  return isGraceful;
}

/**
 * Stops accepting, closes connections as they become idle, and destroys the others when `cut` is
 * aborted. Returns false when some had to be destroyed.
 */
export async function closeGracefully(
  server: HttpServer,
  clock: Clock,
  cut: AbortSignal,
): Promise<boolean> {
  server.isDraining = true;
  let isGraceful = true;
  const destroyAll = () => {
    isGraceful = false;
    server.closeAll();
  };
  const closed = server.close();
  // A connection that was busy when the server closed becomes idle later.
  let check = clock.after(0, function closeIdle() {
    server.closeIdle();
    check = clock.after(idleCheckMs, closeIdle);
  });
  if (cut.aborted) destroyAll();
  cut.addEventListener('abort', destroyAll, { once: true });
  try {
    await closed;
  } finally {
    check.cancel();
    cut.removeEventListener('abort', destroyAll);
  }
  return isGraceful;
}

/**
 * Waits briefly before idle connections are closed: a client may have sent its next request already
 * and would see the connection close. In steps, so that the event loop reads what has arrived.
 */
async function awaitLastRequests(
  server: Server,
  { clock, deadlineMs, signal }: DrainOptions,
): Promise<void> {
  const maxSteps = Math.min(lastRequestsSteps, Math.floor(deadlineMs / lastRequestsStepMs / 2));
  for (let step = 0; step < maxSteps && !signal?.aborted; step++) {
    if ((await connectionsOf(server)) === 0) return;
    await clock.sleep(lastRequestsStepMs);
  }
}

function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}

/** One step of the shutdown. Steps run in order. */
export interface DrainStep {
  name: string;
  /** `signal` is aborted at the deadline. */
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
  /** Deadline for all steps together. */
  deadlineMs: number;
  steps: readonly DrainStep[];
  /** Default: the process. */
  signals?: SignalSource;
}

const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Waits for SIGTERM or SIGINT, then runs the steps. Resolves with the exit code: 0 on success, 1
 * when a step failed or timed out. A second signal ends the process immediately.
 */
export async function serveUntilSignal(options: ServeOptions): Promise<number> {
  const { log, signals = process } = options;
  let firstSignal: ((name: string) => void) | undefined;
  const waiting = new Promise<string>((resolve) => (firstSignal = resolve));
  const receive = (name: keyof typeof exitCodes) => () => {
    if (firstSignal === undefined) {
      log.warn({ signal: name }, 'second signal, exiting immediately');
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
  // Keeps the process alive while it only waits for a signal.
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
      log.warn({ step: step.name, deadline_ms: deadlineMs }, 'drain step timed out');
    } catch (error) {
      log.error({ step: step.name, err: error }, 'drain step failed');
    }
    exitCode = 1;
  }
  deadline.cancel();
  if (exitCode === 0) log.info({}, 'drained');
  return exitCode;
}

/** Options of a server process. */
export interface RunOptions extends ConfigInputs {
  /** Default: the process. */
  signals?: SignalSource;
  /** Destination of the listening lines. Default: stdout. */
  write?: (line: string) => void;
  log?: RootLog;
}

export interface RunningServer {
  readonly listeners: readonly { readonly listener: string; readonly url: string }[];
  /** Settles when the server stops unexpectedly; rejects with the reason. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

interface ServerRun extends Pick<RunOptions, 'signals' | 'write'> {
  /** As in the listening lines: db, queue, daemon. */
  component: string;
  log: RootLog;
  drainTimeoutMs: number;
}

// Time for the shutdown after the drain, which has its own limit.
const afterDrainMs = 10_000;

/**
 * Keeps the process alive while a server starts. A signal during the start aborts `stopping`, and
 * the result is undefined.
 */
export async function whileStarting<Server extends Pick<RunningServer, 'stop'>>(
  start: (stopping: AbortSignal) => Promise<Server>,
  signals: SignalSource = process,
): Promise<Server | undefined> {
  const keepAlive = setInterval(() => undefined, 2 ** 30);
  const controller = new AbortController();
  const stop = () => controller.abort();
  signals.on('SIGTERM', stop);
  signals.on('SIGINT', stop);
  try {
    const server = await start(controller.signal);
    if (!controller.signal.aborted) return server;
    await server.stop();
  } catch (error) {
    if (error !== controller.signal.reason) throw error;
  } finally {
    clearInterval(keepAlive);
    signals.removeListener('SIGTERM', stop);
    signals.removeListener('SIGINT', stop);
  }
  return undefined;
}

/** Prints the listeners and serves until a signal. Resolves with the exit code. */
export function runServer(server: RunningServer, run: ServerRun): Promise<number> {
  const { component, log, drainTimeoutMs, signals, write } = run;
  for (const { listener, url } of server.listeners) announce({ component, listener, url }, write);
  const failed = server.ended.then(
    () => 1,
    (error: unknown) => {
      log.error({ err: error }, 'server stopped unexpectedly');
      return 1;
    },
  );
  const stopped = serveUntilSignal({
    clock: systemClock,
    log,
    deadlineMs: drainTimeoutMs + afterDrainMs,
    steps: [{ name: component, run: () => server.stop() }],
    ...(signals && { signals }),
  });
  return Promise.race([stopped, failed]);
}

/** Creates the log of a server, with the level of its settings or its environment. */
export function serverLog(
  component: string,
  level: LogLevel | undefined,
  { log, environment }: RunOptions,
): RootLog {
  return log ?? createLog({ level: level ?? logLevelFrom(environment), component });
}
