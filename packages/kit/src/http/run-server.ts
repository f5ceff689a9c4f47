import { systemClock } from '../base/clock.js';
import type { ConfigInputs } from '../config/index.js';
import { createLog, logLevelFrom, type LogLevel, type RootLog } from '../base/log.js';
import { serveUntilSignal, type SignalSource } from './drain.js';
import { announce } from './listen.js';

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

export interface ServerRun extends Pick<RunOptions, 'signals' | 'write'> {
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
