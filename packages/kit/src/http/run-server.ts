import { systemClock } from '../clock.js';
import type { ConfigInputs } from '../config/index.js';
import { createLog, logLevelFrom, type LogLevel, type RootLog } from '../log.js';
import { serveUntilSignal, type SignalSource } from './drain.js';
import { announce } from './listen.js';

/** What a person gives to run a server as a process of its own. */
export interface RunOptions extends ConfigInputs {
  /** The process; another one in tests. */
  signals?: SignalSource;
  /** Where the listening lines go; stdout unless told. */
  write?: (line: string) => void;
  log?: RootLog;
}

export interface RunningServer {
  readonly listeners: readonly { readonly listener: string; readonly url: string }[];
  /** Settles when the server ends without having been asked to; rejects with the reason. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

export interface ServerRun extends Pick<RunOptions, 'signals' | 'write'> {
  /** As in the listening lines: db, queue, daemon. */
  component: string;
  log: RootLog;
  drainTimeoutMs: number;
}

// The drain has a limit of its own; this is for what comes after it.
const afterDrainMs = 10_000;

/**
 * Keeps the process up while a server starts: what it waits for there may be a timer alone. Told to
 * stop meanwhile, it aborts `stopping`, and resolves with nothing.
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

/** Says where the server listens and serves until a signal. Resolves with the exit code. */
export function runServer(server: RunningServer, run: ServerRun): Promise<number> {
  const { component, log, drainTimeoutMs, signals, write } = run;
  for (const { listener, url } of server.listeners) announce({ component, listener, url }, write);
  const failed = server.ended.then(
    () => 1,
    (error: unknown) => {
      log.error({ err: error }, 'the server ended by itself');
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

/** The log of a server: at the level of its settings, else of its environment. */
export function serverLog(
  component: string,
  level: LogLevel | undefined,
  { log, environment }: RunOptions,
): RootLog {
  return log ?? createLog({ level: level ?? logLevelFrom(environment), component });
}
