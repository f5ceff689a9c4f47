/**
 * Lists and the commands on their rows, declared once: `ctl`, its terminal dashboard and the
 * browser's dashboard are made from these declarations. Browser-safe.
 */
import type { DaemonOperationId, DaemonOperations } from '../daemon.js';
import type { QueueOperationId, QueueOperations } from '../queue.js';

export type Tone = 'ok' | 'warn' | 'bad' | 'dim' | 'strong';

/** A value of a row. Each program shows times, durations and tones in its own way. */
export type Value =
  | string
  /** Right-aligned. */
  | number
  | { readonly text: string; readonly tone: Tone }
  /**
   * A time, as its age or as a timestamp; `none` stands for null. Terminals of at least `exactFrom`
   * columns show it to the second.
   */
  | { readonly time: string | null; readonly none?: string; readonly exactFrom?: number }
  /** The age of a time, whatever the user prefers. */
  | { readonly age: string }
  /** A time ahead. */
  | { readonly due: string | null }
  /** How long something has lasted. */
  | { readonly since: string; readonly inSeconds?: boolean; readonly suffix?: string }
  /** A duration; `none` stands for 0. */
  | { readonly ms: number; readonly none?: string }
  /** A large number in few digits: `118k`. */
  | { readonly amount: number; readonly tone?: Tone | undefined }
  /** An id, which may be shortened as long as it differs from the others. */
  | { readonly id: string }
  /** Parts of one text. */
  | readonly Value[];

export interface Column<Row> {
  /** A noun. */
  readonly title: string;
  readonly value: (row: Row) => Value;
  /** Minimum width of a terminal that shows it. */
  readonly minWidth?: number;
  /** Long texts are wrapped instead of cut. */
  readonly wraps?: boolean;
  /** Cut first, so that the others are shown whole: a cut id is useless. */
  readonly yields?: boolean;
}

export interface List<Row> {
  readonly columns: readonly Column<Row>[];
  /** Shown when there are no rows. */
  readonly empty: string;
  /** A line below the rows. */
  readonly footer?: (rows: readonly Row[]) => string;
}

/** The facts of one thing; a fact without a value is left out. */
export type Facts = readonly (readonly [name: string, value: Value | null])[];

/** What a command shows: a line, a list or facts. */
export type Shown =
  | string
  | { readonly list: List<never>; readonly rows: readonly unknown[]; readonly more?: string }
  | { readonly facts: Facts };

export function rowsOf<Row>(list: List<Row>, rows: readonly Row[], more?: string): Shown {
  return { list, rows, ...(more !== undefined && { more }) };
}

/** A text in the tone of its value. */
export function toned<Text extends string>(text: Text, tones: Readonly<Record<Text, Tone>>): Value {
  return { text, tone: tones[text] };
}

/** `1 task`, `2 tasks` */
export function counted(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}

export interface OptionDetails {
  readonly choices?: readonly string[];
  readonly default?: string;
  /** May be given several times. */
  readonly repeats?: boolean;
  readonly required?: boolean;
  /** Help does not show it. */
  readonly isHidden?: boolean;
  /** The query parameter that it sets. */
  readonly query?: string;
  /** A time, or how long ago: 2h. */
  readonly isMoment?: boolean;
}

/** A command as its help describes it. */
export interface CommandHelp {
  readonly alias?: string;
  readonly summary: string;
  readonly description: string;
  readonly arguments?: readonly (readonly [
    syntax: string,
    meaning: string,
    choices?: readonly string[],
  ])[];
  readonly options?: readonly (readonly [
    syntax: string,
    meaning: string,
    details?: OptionDetails,
  ])[];
  readonly examples: readonly (readonly [line: string, note: string])[];
  readonly exitCodes?: Readonly<Record<number, string>>;
  /** It changes nothing, so `--watch` can repeat it. */
  readonly isView?: boolean;
}

/** A command that calls one operation and shows its response; with --json, the response itself. */
export interface OperationCommand<Id extends string = string, Answer = never> extends CommandHelp {
  readonly operation: Id;
  /** The path parameters that the arguments are. */
  readonly path?: readonly string[];
  readonly body?: (args: readonly string[]) => object;
  readonly shows: (answer: Answer, args: readonly string[]) => Shown;
  /** What --json prints instead of the response. */
  readonly json?: (args: readonly string[], answer: Answer) => object;
  /** Whether the response is bad news: exit code 1. */
  readonly isFailure?: (answer: Answer) => boolean;
  /** The member of a response that comes in pages; all are read, or as many as `limit` says. */
  readonly pages?: { readonly member: string; readonly limit?: number };
  /** How long the server may take. */
  readonly patienceMs?: number;
}

type SuccessStatus = 200 | 201 | 202;
type Answer<Operation> = Operation extends { responses: infer Responses }
  ? {
      [Status in keyof Responses & SuccessStatus]: Responses[Status] extends {
        content: { 'application/json': infer Body };
      }
        ? Body
        : undefined;
    }[keyof Responses & SuccessStatus]
  : never;

/** Checks a command of the queue against the contract. */
export function queueCommand<Id extends QueueOperationId>(
  command: OperationCommand<Id, Answer<QueueOperations[Id]>>,
): OperationCommand {
  return command;
}

/** Checks a command of the daemon against the contract. */
export function daemonCommand<Id extends DaemonOperationId>(
  command: OperationCommand<Id, Answer<DaemonOperations[Id]>>,
): OperationCommand {
  return command;
}

/** A group of commands by their names. */
export interface CommandGroup extends CommandHelp {
  readonly commands: Readonly<Record<string, OperationCommand>>;
}
