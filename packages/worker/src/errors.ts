import type { QueueSchema } from '@millrace/contract/queue';

export interface RetryLaterOptions extends ErrorOptions {
  /** The next attempt comes no sooner than this; at most one hour. */
  afterMs: number;
  message?: string;
}

/** Thrown by a handler: try again after some time. */
export class RetryLater extends Error {
  override readonly name: string = 'RetryLater';
  readonly afterMs: number;

  constructor({ afterMs, message, cause }: RetryLaterOptions) {
    super(message ?? `Try again in ${afterMs} ms`, { cause });
    this.afterMs = afterMs;
  }
}

/** Thrown by a handler: do not try again. The task goes to the dead-letter queue. */
export class PermanentError extends Error {
  override readonly name: string = 'PermanentError';
}

/** A step or a child task failed for good. Uncaught it ends the task. */
export class StepFailed extends PermanentError {
  override readonly name: string = 'StepFailed';

  constructor(
    message: string,
    /** Of the failure, such as the name of the error that was thrown. */
    readonly errorType: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Ends the run of a handler that waits; the handler itself never sees it. */
export class Suspended extends Error {
  override readonly name: string = 'Suspended';

  constructor(readonly suspend: QueueSchema<'Suspension'>) {
    super('The task is suspended');
  }
}

/** A handler returned what the schema of its results refuses: the task is DEAD. */
export class InvalidResult extends PermanentError {
  override readonly name: string = 'INVALID_RESULT';
}

/** The reason of a handler's `signal` when the attempt took longer than `timeoutMs`. */
export class TaskTimeout extends Error {
  override readonly name: string = 'TIMEOUT';
}

/** A payload, at its producer, or a result that fails the schema of its task. */
export class ValidationError extends Error {
  override readonly name: string = 'ValidationError';

  constructor(
    message: string,
    /** Each fault with the path of its field, such as `items.0.sku`. */
    readonly issues: readonly { readonly path: string; readonly message: string }[] = [],
  ) {
    super(message);
  }
}

/** The reason of a handler's `signal` when its task was cancelled. */
export class TaskCancelled extends Error {
  override readonly name: string = 'TaskCancelled';
}

/** The reason of a handler's `signal` when the task may run elsewhere by now. */
export class LeaseLost extends Error {
  override readonly name: string = 'LeaseLost';
}

/** The task of `submitAndWait` is dead, or was purged. */
export class TaskFailed extends Error {
  override readonly name: string = 'TaskFailed';

  constructor(
    message: string,
    readonly taskId: string,
    /** Of the last failure, such as HTTP_5XX. */
    readonly errorType: string | null,
  ) {
    super(message);
  }
}

/** The task of `submitAndWait` did not end in time. It goes on. */
export class WaitTimeout extends Error {
  override readonly name: string = 'WaitTimeout';

  constructor(
    readonly taskId: string,
    timeoutMs: number,
  ) {
    super(`The task ${taskId} did not end within ${timeoutMs} ms. It goes on.`);
  }
}

const errorTypePattern = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;
const maxMessageBytes = 1_024;
const maxStackBytes = 2_048;
const maxRetryAfterMs = 3_600_000;

/** What a handler threw, as the attempt records it. */
export interface Failure {
  errorType: string;
  /** The first KiB. */
  message: string;
  /** The first 2 KiB. */
  stack: string;
  isPermanent: boolean;
  retryAfterMs: number | undefined;
}

export function failureOf(thrown: unknown): Failure {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  // What a step threw keeps its name in the attempt.
  const { name } =
    error instanceof StepFailed && error.cause instanceof PermanentError ? error.cause : error;
  return {
    errorType: errorTypePattern.test(name) ? name : 'INTERNAL',
    message: cut(error.message, maxMessageBytes),
    stack: cut(error.stack ?? `${error.name}: ${error.message}`, maxStackBytes),
    isPermanent: error instanceof PermanentError,
    retryAfterMs:
      error instanceof RetryLater
        ? Math.min(Math.max(0, error.afterMs || 0), maxRetryAfterMs)
        : undefined,
  };
}

/** The longest well-formed prefix of a text within a number of bytes. */
function cut(text: string, maxBytes: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= maxBytes) return new TextDecoder().decode(bytes);
  // A character that is cut in two becomes a replacement character.
  return new TextDecoder().decode(bytes.subarray(0, maxBytes)).replace(/\uFFFD$/, '');
}
