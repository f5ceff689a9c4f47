import { ValidationError } from './errors.js';
import { toWire } from './names.js';
import { encodeJson, payloadContentType } from './payload.js';
import {
  checkPayload,
  checkPayloadNow,
  definitionOf,
  queuesOf,
  type TaskSettings,
} from './tasks.js';
import type { Tasks, TaskTypes } from './tasks.js';
import { traceHeaders } from './tracing.js';
import type { SubmitRequest } from './transport.js';

export interface SubmitOptions extends TaskSettings {
  /** A ULID; submitting it again changes nothing. */
  id?: string;
  delayMs?: number;
  runAt?: Date | string;
  expiresAt?: Date | string;
  /** 0 to 9, higher first; 4 if absent. */
  priority?: number;
  groupKey?: string;
  headers?: Readonly<Record<string, string>>;
  /** While a task with this key waits or runs, a second submit returns that task. */
  uniqueKey?: string;
  uniqueForMs?: number;
  /** With a unique key: each submit replaces the payload and puts the task off by this long. */
  debounceMs?: number;
  /** Tasks that must end first, by id. */
  dependsOn?: readonly (string | { id: string; on?: 'success' | 'end' })[];
  /** The task that this one is a child of. */
  parentId?: string;
  parentLeaseToken?: string;
  /** Only workers with all of these labels get the task; at most 10. */
  labels?: readonly string[];
}

export interface WaitOptions extends Omit<SubmitOptions, 'timeoutMs'> {
  /** How long to wait for the end of the task; 60 s if absent. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

type RefOf<Types extends TaskTypes> = keyof Types & string;
/** One task of `submitMany`. */
export type ManyItem<Types extends TaskTypes> = {
  [Ref in RefOf<Types>]: SubmitOptions & { ref: Ref; payload: Types[Ref]['input'] };
}[RefOf<Types>];

export interface Submission<Options extends SubmitOptions | WaitOptions = SubmitOptions> {
  ref: string;
  payload: unknown;
  options: Options & { queue?: string };
}

/** Reads either form of the arguments: with the queue first, or without. */
export function readArguments<Options extends SubmitOptions | WaitOptions>(
  tasks: Tasks<TaskTypes>,
  given: readonly unknown[],
): Submission<Options> {
  const [first, second] = given;
  const isKnown = (ref: unknown) => definitionOf(tasks, String(ref)) !== undefined;
  const hasQueue =
    typeof second === 'string' && (given.length >= 4 || isKnown(second) || !isKnown(first));
  const [ref, payload, options] = hasQueue ? given.slice(1) : given;
  return {
    ref: ref as string,
    payload,
    options: { ...(options as Options), ...(hasQueue && { queue: first as string }) },
  };
}

/** The queue of a task: as given, or as its definition says. */
export function queueOf(tasks: Tasks<TaskTypes>, ref: string, queue: string | undefined): string {
  const found = queue ?? definitionOf(tasks, ref)?.queue;
  if (found !== undefined) return found;
  throw new ValidationError(
    `The task ${ref} has no queue: give one to submit, or name it in defineTasks.`,
  );
}

/** The queue that a call means: as given, or the only one that the definitions name. */
export function onlyQueue(tasks: Tasks<TaskTypes>, queue: string | undefined): string {
  if (queue !== undefined) return queue;
  const named = queuesOf(tasks);
  if (named.length === 1) return named[0]!;
  throw new ValidationError('Name the queue: { queue }.');
}

interface WireSubmission {
  queue: string;
  request: SubmitRequest;
}

/** Checks a submission and writes it as the wire has it; throws a ValidationError. */
export async function submitRequest(
  tasks: Tasks<TaskTypes>,
  submission: Submission,
): Promise<WireSubmission> {
  await checkPayload(tasks, submission.ref, submission.payload);
  const { queue, request } = wireSubmission(tasks, submission);
  const headers = await traceHeaders(submission.options.headers);
  return { queue, request: headers ? { ...request, headers } : request };
}

/** The same without waiting, for a transaction. */
export function submitRequestNow(tasks: Tasks<TaskTypes>, submission: Submission): WireSubmission {
  checkPayloadNow(tasks, submission.ref, submission.payload);
  return wireSubmission(tasks, submission);
}

function wireSubmission(
  tasks: Tasks<TaskTypes>,
  { ref, payload, options }: Submission,
): WireSubmission {
  const { payload: _payload, result: _result, ...defaults } = definitionOf(tasks, ref) ?? {};
  const { queue: _queue, ...settings } = { ...defaults, ...options };
  const request = {
    handler_ref: ref,
    ...(payload !== undefined && {
      payload: encodeJson(payload),
      payload_content_type: payloadContentType,
    }),
    ...toWire(settings),
  };
  return { queue: queueOf(tasks, ref, options.queue), request };
}
