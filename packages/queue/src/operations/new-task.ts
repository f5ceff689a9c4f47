import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import { isBase64 } from '@millrace/kit/http';
import type { Queue } from '../core/queue.js';
import type { NewTask } from '../storage/port/task-store.js';
import type { BodyCheck } from './base/checks.js';
import { fail, failBody } from './base/refusal.js';
import { timeIn } from './base/time-in.js';

type Submitted = QueueSchema<'SubmitTaskRequest'>;

export interface Submission {
  queue: Queue;
  now: number;
  by: string;
  newId: () => string;
}

const maxDelayMs = 30 * 86_400_000;
const maxHeaderBytes = 16_384;
const defaultPriority = 4;
const defaultContentType = 'application/octet-stream';

/** Validates a submit request. Throws the refusal if the task breaks a rule. */
export function newTask(
  check: BodyCheck<Submitted>,
  body: unknown,
  { queue, now, by, newId }: Submission,
): NewTask {
  const given = check.read(body);
  const faults: FieldError[] = [];
  const payload = readPayload(given.payload ?? '', faults);
  const dueAt = readDueAt(given, now, faults);
  const expiresAt = readExpiresAt(given, now, faults);
  checkHeaders(given.headers, faults);
  if (given.group_key !== undefined && !given.group_key.isWellFormed()) {
    faults.push({ pointer: '/group_key', message: 'has half of a surrogate pair' });
  }
  const key = readUniqueKey(given, now, faults);
  if (faults.length > 0) throw failBody('INVALID_TASK', faults);
  const { limits } = queue.config;
  if (payload.length > limits.max_payload_bytes) {
    throw fail(
      'PAYLOAD_TOO_LARGE',
      `The payload has ${payload.length} bytes; the queue ${queue.name} takes at most ` +
        `${limits.max_payload_bytes}.`,
    );
  }
  return {
    id: given.id?.toUpperCase() ?? newId(),
    queue: queue.name,
    handlerRef: given.handler_ref,
    payload,
    payloadContentType: given.payload_content_type ?? defaultContentType,
    headers: given.headers ?? {},
    priority: given.priority ?? defaultPriority,
    groupKey: given.group_key ?? null,
    dueAt,
    expiresAt,
    submittedBy: by,
    ...key,
    maxPending: limits.max_pending,
  };
}

const maxKeyBytes = 256;

/** The unique key, and until when it is held. */
function readUniqueKey(
  { unique_key: key, unique_for_ms: forMs }: Submitted,
  now: number,
  faults: FieldError[],
): Pick<NewTask, 'uniqueKey' | 'uniqueUntil'> | undefined {
  if (key === undefined) return undefined;
  const pointer = '/unique_key';
  if (!key.isWellFormed()) faults.push({ pointer, message: 'has half of a surrogate pair' });
  if (Buffer.byteLength(key) > maxKeyBytes) {
    faults.push({ pointer, message: `must have at most ${maxKeyBytes} bytes` });
  }
  return { uniqueKey: key, uniqueUntil: forMs === undefined ? null : now + forMs };
}

const noBytes = new Uint8Array(0);

function readPayload(text: string, faults: FieldError[]): Uint8Array {
  if (text === '') return noBytes;
  // Node's base64 decoder accepts invalid input, so it cannot be the check.
  if (isBase64(text)) return Buffer.from(text, 'base64');
  faults.push({
    pointer: '/payload',
    message: 'must be base64 of RFC 4648: standard alphabet, padded, no line breaks',
  });
  return noBytes;
}

function readDueAt({ run_at, delay_ms }: Submitted, now: number, faults: FieldError[]): number {
  if (run_at === undefined) return now + (delay_ms ?? 0);
  return readRunAt(run_at, now, faults);
}

/** A time of at most 30 days ahead; one in the past means now. */
export function readRunAt(text: string, now: number, faults: FieldError[]): number {
  const time = timeIn(text, '/run_at', faults);
  if (time - now > maxDelayMs) {
    faults.push({ pointer: '/run_at', message: 'must be at most 30 days ahead' });
  }
  return Math.max(time, now);
}

function readExpiresAt(
  { expires_at }: Submitted,
  now: number,
  faults: FieldError[],
): number | null {
  if (expires_at === undefined) return null;
  const time = timeIn(expires_at, '/expires_at', faults);
  if (time <= now) faults.push({ pointer: '/expires_at', message: 'must be in the future' });
  return time;
}

function checkHeaders(headers: Submitted['headers'], faults: FieldError[]): void {
  if (headers === undefined) return;
  let bytes = 0;
  for (const name in headers) bytes += name.length + headers[name]!.length;
  if (bytes > maxHeaderBytes) {
    const message = `must have at most ${maxHeaderBytes} bytes over all names and values`;
    faults.push({ pointer: '/headers', message });
  }
}
