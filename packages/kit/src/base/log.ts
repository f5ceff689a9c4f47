import { createRequire } from 'node:module';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { UsageError } from './errors.js';

/** Replaces secrets in output and logs. */
export const hidden = '[hidden]';

// Plurals and suffixes do not match: `input_tokens` is a count, `secret_refs` are names,
// `tokens_file` is a path.
const secretName =
  /(?:authorization|cookies?|token|secret|passw(?:or)?d|passphrase|credentials?|(?:api|private|signing|access|follow)[-_.]?keys?)$/i;

/** True for a header, field or key whose value is secret: `x-api-key`, `accessToken`. */
export function isSecretName(name: string): boolean {
  return secretName.test(name);
}

// "bearer" and "basic" also occur in prose; a credential is long, or has a digit or a capital
// after its first letter.
const bearer =
  /\b([Bb]earer|BEARER|[Bb]asic|BASIC)(\s+)(?:[\w.~+/=-]{16,}|(?=[\w.~+/=-]+[A-Z0-9=])[\w.~+/=-]{6,})/g;
const issued = /\b(mr_|whsec_)[\w+/=.-]{6,}/g;
const inQuery = /([?&](?:\w*token|api[-_]?key|key|secret|password|signature)=)[^&#\s"\\]+/gi;
const password = /(:\/\/[^\s/:@"\\]*):[^\s/@"\\]+@/g;

const userinfo = /:\/\/.*@/;

/** True for text with a URL that may contain a user name or password. */
export function hasUserinfo(text: string): boolean {
  return userinfo.test(text);
}

/** Redacts bearer tokens, Millrace tokens and secrets in URLs. */
export function scrubText(text: string): string {
  return text
    .replace(bearer, `$1$2${hidden}`)
    .replace(issued, `$1${hidden}`)
    .replace(inQuery, `$1${hidden}`)
    .replace(password, `$1:${hidden}@`);
}

// Broader than `secretName`: matches a member of an object or an item of a list.
const secretMember =
  /(?:authorization|cookies?|token|secret|passw(?:or)?d|passphrase|credentials?|keys?)"\s*[:,]\s*["[{]/i;

/**
 * Redacts the secrets of one line of JSON. It works on the serialized line, so depth, fields of
 * child loggers and toJSON cannot bypass it. Lines without a secret name are not parsed.
 */
export function scrubJsonLine(line: string): string {
  const clean = secretMember.test(line) ? hideMembers(line) : line;
  return scrubText(clean);
}

function hideMembers(line: string): string {
  const record: unknown = JSON.parse(line);
  return `${JSON.stringify(hideIn(record))}\n`;
}

function hideIn(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item, index) => hideItem(value, item, index));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]): [string, unknown] => [
    name,
    isSecretName(name) && holdsText(member) ? hidden : hideIn(member),
  ]);
  return Object.fromEntries(entries);
}

// Raw headers are a flat list: a name, its value, the next name.
function hideItem(list: readonly unknown[], item: unknown, index: number): unknown {
  const before = index % 2 === 1 ? list[index - 1] : undefined;
  const follows = typeof before === 'string' && before.length < 64 && isSecretName(before);
  return follows && typeof item === 'string' ? hidden : hideIn(item);
}

function holdsText(value: unknown): boolean {
  return (
    (typeof value === 'string' && value !== '') || (typeof value === 'object' && value !== null)
  );
}

/** The part of the logger interface that code depends on; pino implements it. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Log;
}

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** The full pino logger, created in the composition root. */
export type RootLog = pino.Logger;

export interface LogOptions {
  level: LogLevel;
  /** `queue`, `db`, `daemon` or `ctl`; a field of every line. */
  component: string;
  /** Human-readable lines instead of JSON. Default: when stderr is a terminal. */
  pretty?: boolean;
  /** Destination of the lines. Default: stderr. */
  destination?: { write(line: string): void };
}

/**
 * Logs JSON lines to stderr, or human-readable lines to a terminal. Secrets are redacted: by field
 * name (`authorization`, `accessToken`, ...) at any depth, and by pattern (bearer tokens, `mr_...`,
 * `whsec_...`) in any text.
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

/** The log level set by `MILLRACE_LOG`. */
export function logLevelFrom(
  environment: Readonly<Record<string, string | undefined>>,
  otherwise: LogLevel = 'info',
): LogLevel {
  const text = environment['MILLRACE_LOG'];
  return text ? logLevelOf(text, '$MILLRACE_LOG') : otherwise;
}

/** Parses a log level; `source` names the input in the error. */
export function logLevelOf(text: string, source: string): LogLevel {
  const level = logLevels.find((known) => known === text.toLowerCase());
  if (level) return level;
  throw new UsageError(`${source} must be one of ${logLevels.join(', ')}, not "${text}"`);
}

// A blocked pipe must not stop the server or fill its memory: lines are written asynchronously and
// dropped beyond this limit. pino flushes the rest when the process exits.
const maxUnwrittenBytes = 16 * 2 ** 20;

function stderrStream(): pino.DestinationStream {
  return pino.destination({ dest: 2, sync: false, maxLength: maxUnwrittenBytes });
}

type PrettyFactory = (options: object) => pino.DestinationStream;

// Loaded only for a terminal, because it is slow to load.
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

// Error fields are not enumerable: under any name but `err` an Error would be logged as `{}`.
function serializeErrors(fields: Record<string, unknown>): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined;
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'err' || !(value instanceof Error)) continue;
    copy ??= { ...fields };
    copy[name] = pino.stdSerializers.errWithCause(value);
  }
  return copy ?? fields;
}

/** Discards every line. */
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
  /** Fields of the call, merged over those of the parent loggers. */
  fields: Record<string, unknown>;
}

/** Stores every line without redaction, for tests. */
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
