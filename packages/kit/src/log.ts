import { createRequire } from 'node:module';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { UsageError } from './errors.js';
import { scrubJsonLine } from './secrecy.js';

/** The narrow face of the logger that code depends on; pino satisfies it. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Log;
}

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** What a composition root holds: the whole of pino, for the HTTP server to log with as well. */
export type RootLog = pino.Logger;

export interface LogOptions {
  level: LogLevel;
  /** Who speaks: `queue`, `db`, `daemon`, `ctl`. On every line. */
  component: string;
  /** Lines for people instead of JSON. Without it: when stderr is a terminal. */
  pretty?: boolean;
  /** Where finished lines go. Without it: stderr. */
  destination?: { write(line: string): void };
}

/**
 * Logs JSON lines to stderr, or readable ones when a person is watching. Secrets never reach the
 * destination: they are known by their names (`authorization`, `accessToken`, ...) at any depth
 * and by their looks (bearer tokens, `mr_...`, `whsec_...`) in any text.
 */
export function createLog(options: LogOptions): RootLog {
  const pretty = options.pretty ?? (options.destination === undefined && process.stderr.isTTY);
  const logger = pino(
    {
      level: options.level,
      base: { component: options.component, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: serializeErrors },
      serializers: { err: pino.stdSerializers.errWithCause },
      hooks: { streamWrite: scrubJsonLine },
    },
    pretty ? prettyStream(options.destination) : (options.destination ?? stderrStream()),
  );
  return logger;
}

/** The level that the environment asks for by `MILLRACE_LOG`. */
export function logLevelFrom(
  environment: Readonly<Record<string, string | undefined>>,
  otherwise: LogLevel = 'info',
): LogLevel {
  const text = environment['MILLRACE_LOG'];
  return text ? logLevelOf(text, '$MILLRACE_LOG') : otherwise;
}

/** Reads a level, or says where the wrong one came from. */
export function logLevelOf(text: string, source: string): LogLevel {
  const level = logLevels.find((known) => known === text.toLowerCase());
  if (level) return level;
  throw new UsageError(`${source} must be one of ${logLevels.join(', ')}, not "${text}"`);
}

// A pipe that nobody reads must not stop the server or fill its memory, so lines are written in
// the background and dropped beyond this much; pino flushes the rest when the process exits.
const maxUnwrittenBytes = 16 * 2 ** 20;

function stderrStream(): pino.DestinationStream {
  return pino.destination({ dest: 2, sync: false, maxLength: maxUnwrittenBytes });
}

type PrettyFactory = (options: object) => pino.DestinationStream;

// Loaded only for a terminal: it costs more start-up time than the rest of the logger.
function prettyStream(destination: LogOptions['destination']): pino.DestinationStream {
  const pinoPretty = createRequire(import.meta.url)('pino-pretty') as PrettyFactory;
  return pinoPretty({
    colorize: destination === undefined && process.stderr.isTTY && process.stderr.hasColors(),
    destination: destination ? asWritable(destination) : 2,
    sync: true,
    ignore: 'pid',
    translateTime: 'SYS:HH:MM:ss.l',
  });
}

function asWritable(destination: { write(line: string): void }): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      destination.write(chunk.toString());
      done();
    },
  });
}

// An Error's own fields are not enumerable: under any name but `err` it would be written as `{}`.
function serializeErrors(fields: Record<string, unknown>): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined;
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'err' || !(value instanceof Error)) continue;
    copy ??= { ...fields };
    copy[name] = pino.stdSerializers.errWithCause(value);
  }
  return copy ?? fields;
}

/** Says nothing. */
export const silentLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
};

export interface LogLine {
  level: 'debug' | 'info' | 'warn' | 'error';
  message: string;
  /** The call's fields over those of the loggers it descends from. */
  fields: Record<string, unknown>;
}

/** Keeps every line, unscrubbed, for a test to look at. */
export interface MemoryLog extends Log {
  readonly lines: LogLine[];
  child(fields: object): MemoryLog;
}

export function memoryLog(onLine?: (line: LogLine) => void): MemoryLog {
  const lines: LogLine[] = [];
  const below = (inherited: object): MemoryLog => {
    const at = (level: LogLine['level']) => (fields: object, message: string) => {
      const line = { level, message, fields: { ...inherited, ...fields } };
      lines.push(line);
      onLine?.(line);
    };
    return {
      lines,
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: (fields) => below({ ...inherited, ...fields }),
    };
  };
  return below({});
}
