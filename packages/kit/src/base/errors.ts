/**
 * There are three kinds of errors. An expected outcome is a return value. A request that cannot be
 * served is a `Refusal` with a code from a closed list. Everything else is a bug: it is logged with
 * its stack and shown to the client as "Internal error".
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
  /** Sent as Retry-After. */
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

/** HTTP status and title of an error code. */
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
 * A mistake on the command line or in a config file: shown as one line without a stack trace, exit
 * code 2.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The message of any thrown value, never empty. */
export function messageOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error);
  const message = 'message' in error && typeof error.message === 'string' ? error.message : '';
  if (message !== '') return message;
  // A connection refused at every address of a host is an AggregateError without a message.
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

/** What `read` returns; undefined where there is no such file or directory. */
export function ifThere<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch (error) {
    return absent(error);
  }
}

/** The same for a promise. */
export function whenThere<Result>(reading: Promise<Result>): Promise<Result | undefined> {
  return reading.catch(absent);
}

function absent(error: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR'].includes(systemCode(error))) throw error;
}

/** The value of a JSON text; undefined where it is none. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The members of a JSON object; undefined where the text is none. */
export function membersIn(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = jsonIn(text);
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}
