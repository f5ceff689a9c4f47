/**
 * Errors are of three kinds. An expected outcome is a return value. A refusal is a `Refusal`:
 * the caller asked for something that cannot be had, and is told so by a code from a closed list.
 * Everything else is a bug, logged whole and shown to the caller as "Internal error".
 */
export class Refusal<Code extends string = string> extends Error {
  override readonly name = 'Refusal';

  constructor(
    readonly code: Code,
    /** One sentence for the person who made the call: what is wrong and what to do. */
    readonly detail: string,
    readonly extra: RefusalExtra = {},
  ) {
    super(`${code}: ${detail}`, extra.cause === undefined ? {} : { cause: extra.cause });
  }
}

export interface RefusalExtra {
  /** Each place in the request that is wrong, as a JSON pointer. */
  errors?: readonly FieldError[];
  /** When it makes sense to try again. */
  retryAfterMs?: number;
  /** Response headers that belong to this refusal. */
  headers?: Readonly<Record<string, string>>;
  /** Members to add to the problem document. */
  members?: Readonly<Record<string, unknown>>;
  cause?: unknown;
}

export interface FieldError {
  pointer: string;
  message: string;
}

/** One line of a server's table of codes: what a code means over HTTP. */
export interface CodeMeaning {
  status: number;
  title: string;
}

export type CodeTable<Code extends string = string> = Readonly<Record<Code, CodeMeaning>>;

/**
 * A typed `fail` for one component: `throw fail('QUEUE_NOT_FOUND', '...')` compiles only with
 * codes of its table.
 */
export function failWith<Code extends string>(_table: CodeTable<Code>) {
  return (code: Code, detail: string, extra?: RefusalExtra): Refusal<Code> =>
    new Refusal(code, detail, extra);
}

/**
 * A mistake of the person at the command line or in a config file: shown as one line without a
 * stack trace, exit code 2.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The text of whatever was thrown, never empty. */
export function messageOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error);
  const message = 'message' in error && typeof error.message === 'string' ? error.message : '';
  if (message !== '') return message;
  // A connection refused at every address of a name is an AggregateError without a message.
  if (error instanceof AggregateError && error.errors.length > 0) {
    return error.errors.map(messageOf).join('; ');
  }
  if (systemCode(error) !== '') return systemCode(error);
  return error instanceof Error ? error.name : 'an object without a message';
}

/** The `code` of a system error such as ENOENT, or "". */
export function systemCode(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}
