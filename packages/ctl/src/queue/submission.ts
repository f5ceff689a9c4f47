import type { Flags } from '../base/tools.js';
import { buffer } from 'node:stream/consumers';
import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { membersIn, UsageError } from '@millrace/kit/errors';
import { systemRandom } from '@millrace/kit/random';
import {
  durationOf,
  parseJson,
  wholeNumber,
  bytesOf,
  momentAhead,
  momentFromNow,
} from '../base/arguments.js';
import type { Terminal } from '../base/terminal.js';
import type { QueueFlags } from './locate.js';

export type SubmitFlags = Flags<
  'payload file contentType id delay at priority group uniqueKey debounce maxAttempts backoff attemptTimeout retain expiresAt batch timeout',
  'wait'
> & { header?: string[]; label?: string[]; dependsOn?: string[] };

/** A task to submit. It always has an id, so that the request is safe to repeat. */
export type Submission = QueueSchema<'SubmitTaskRequest'> & { id: string };

export async function submissionOf(
  handler: string | undefined,
  stdin: string | undefined,
  flags: SubmitFlags,
  terminal: Terminal,
): Promise<Submission> {
  if (handler === undefined) {
    throw new UsageError('Name the handler after the queue, or a file of tasks with --batch.');
  }
  if (flags.delay !== undefined && flags.at !== undefined) {
    throw new UsageError('Give --delay or --at, not both.');
  }
  const payload = await payloadOf(stdin, flags, terminal);
  // An object or a list, as in the examples: bytes are not what its handler expects.
  const isJson = membersIn(flags.payload ?? '') !== undefined;
  const contentType = flags.contentType ?? (isJson ? 'application/json' : undefined);
  const delayMs = durationOf(flags.delay, '--delay');
  const runAt = momentFromNow(flags.at, '--at');
  const expiresAt = momentAhead(flags.expiresAt, '--expires-at');
  const priority = priorityOf(flags.priority);
  return {
    id: flags.id ?? systemRandom.ulid(systemClock.now()),
    handler_ref: handler,
    ...(payload === undefined ? {} : { payload: payload.toString('base64') }),
    ...(contentType === undefined ? {} : { payload_content_type: contentType }),
    ...(flags.header === undefined ? {} : { headers: headersOf(flags.header) }),
    ...(delayMs === undefined ? {} : { delay_ms: delayMs }),
    ...(runAt === undefined ? {} : { run_at: runAt }),
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
    ...(priority === undefined ? {} : { priority }),
    ...(flags.group === undefined ? {} : { group_key: flags.group }),
    ...optionsOf(flags),
    ...(flags.dependsOn === undefined ? {} : { depends_on: flags.dependsOn.map(dependencyOf) }),
  };
}

/** What the task decides for itself. */
function optionsOf(flags: SubmitFlags): Partial<Submission> {
  const debounceMs = durationOf(flags.debounce, '--debounce');
  const maxAttempts = wholeNumber(flags.maxAttempts, '--max-attempts', 1);
  const timeoutMs = durationOf(flags.attemptTimeout, '--attempt-timeout');
  const retainMs = durationOf(flags.retain, '--retain');
  return {
    ...(flags.uniqueKey !== undefined && { unique_key: flags.uniqueKey }),
    ...(debounceMs !== undefined && { debounce_ms: debounceMs }),
    ...(flags.label !== undefined && { labels: flags.label }),
    ...(maxAttempts !== undefined && { max_attempts: maxAttempts }),
    ...(flags.backoff !== undefined && { backoff: backoffOf(flags.backoff) }),
    ...(timeoutMs !== undefined && { timeout_ms: timeoutMs }),
    ...(retainMs !== undefined && { retain_ms: retainMs }),
  };
}

function backoffOf(text: string): NonNullable<Submission['backoff']> {
  const [, kind, delay] = /^(fixed|exponential):(.+)$/.exec(text) ?? [];
  if (kind === undefined) {
    throw new UsageError(`--backoff must be fixed:30s or exponential:1s, not "${text}".`);
  }
  return { kind: kind as 'fixed' | 'exponential', ms: durationOf(delay, '--backoff')! };
}

/** What `ctl queue update` changes. */
export async function updateOf(
  flags: SubmitFlags,
  terminal: Terminal,
): Promise<QueueSchema<'UpdateTaskRequest'>> {
  if (flags.delay !== undefined && flags.at !== undefined) {
    throw new UsageError('Give --delay or --at, not both.');
  }
  const payload = await payloadOf(undefined, flags, terminal);
  const runAt = momentFromNow(flags.delay, '--delay') ?? momentFromNow(flags.at, '--at');
  const priority = priorityOf(flags.priority);
  const body = {
    ...(priority !== undefined && { priority }),
    ...(runAt !== undefined && { run_at: runAt }),
    ...(payload !== undefined && { payload: payload.toString('base64') }),
    ...(flags.contentType !== undefined && { payload_content_type: flags.contentType }),
  };
  if (Object.keys(body).length > 0) return body;
  throw new UsageError('Say what to change: --priority, --delay, --at, --payload or --file.');
}

/** `ID`, or `ID:end` for a task that may also fail. */
function dependencyOf(text: string): { id: string; on: 'success' | 'end' } {
  const [id = '', on = 'success', ...more] = text.split(':');
  if (more.length === 0 && (on === 'success' || on === 'end')) return { id, on };
  throw new UsageError(`--depends-on must be ID or ID:end, not "${text}".`);
}

const maxPriority = 9;

function priorityOf(text: string | undefined): number | undefined {
  const priority = wholeNumber(text, '--priority');
  if (priority === undefined || priority <= maxPriority) return priority;
  throw new UsageError(`--priority must be 0 to ${maxPriority}, not ${priority}.`);
}

async function payloadOf(
  stdin: string | undefined,
  { payload, file, contentType = '' }: SubmitFlags,
  terminal: Terminal,
): Promise<Buffer | undefined> {
  if (stdin !== undefined && stdin !== '-') {
    throw new UsageError(
      `"${stdin}" is not understood. Give a payload as --payload TEXT, --file FILE, or - ` +
        'for stdin.',
    );
  }
  const given = [stdin, payload, file].filter((source) => source !== undefined);
  if (given.length > 1) throw new UsageError('Give one payload: --payload, --file or -.');
  if (payload !== undefined) {
    // Only a payload on the command line is checked, because a shell may have changed it.
    if (/^application\/(\S+\+)?json\b/i.test(contentType)) parseJson(payload, '--payload');
    return Buffer.from(payload);
  }
  const source = stdin ?? file;
  return source === undefined ? undefined : buffer(bytesOf(source, terminal));
}

function headersOf(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(':');
      if (at > 0) return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
      throw new UsageError(`--header must be "Name: value", not "${line}".`);
    }),
  );
}

/** How long to wait for the end of the task; undefined: do not wait. */
export function waitOf({ wait, timeout }: SubmitFlags): number | undefined {
  const timeoutMs = durationOf(timeout, '--timeout');
  if (wait === true) return timeoutMs ?? Infinity;
  if (timeoutMs !== undefined) throw new UsageError('--timeout needs --wait.');
  return undefined;
}

/** A file of tasks contains everything about them. */
export function checkBatchFlags(handler: string | undefined, flags: SubmitFlags): void {
  const {
    batch: _batch,
    url: _url,
    tokenFile: _file,
    data: _data,
    ...others
  } = flags as SubmitFlags & QueueFlags;
  const [first] = Object.keys(others);
  if (handler === undefined && first === undefined) return;
  const what = handler === undefined ? `--${kebab(first!)}` : `"${handler}"`;
  throw new UsageError(
    `${what} cannot be combined with --batch. Put it into the lines of the file.`,
  );
}

function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
