import { PermanentError, ValidationError } from './errors.js';
import {
  describeIssue,
  pathOfIssue,
  type StandardSchema,
  type ValidationResult,
} from './standard-schema.js';

/** What is submitted for a task, what its handler receives and returns, and what that becomes. */
export interface TaskType {
  input: unknown;
  output: unknown;
  returned: unknown;
  result: unknown;
}

export type TaskTypes = Record<string, TaskType>;

/** What a handler learns of its task. */
export interface TaskInfo {
  readonly id: string;
  readonly queue: string;
  readonly handlerRef: string;
  /** From 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly redriveCount: number;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Backoff {
  /** `exponential` doubles the delay with each attempt. */
  kind: 'exponential' | 'fixed';
  ms: number;
  maxMs?: number;
  /** 0 to 1: how much of the delay is random. */
  jitter?: number;
}

/** Settings that a definition gives all its tasks, unless a submit has its own. */
export interface TaskSettings {
  /** Where it goes, unless the submit says so. */
  queue?: string;
  maxAttempts?: number;
  backoff?: Backoff;
  /** How long one attempt may take. */
  timeoutMs?: number;
  /** How long the ended task is kept. */
  retainMs?: number;
}

export interface TaskDefinition extends TaskSettings {
  payload?: StandardSchema;
  /** Checked when the handler returns: a result that fails makes the task DEAD. */
  result?: StandardSchema;
}

/** The tasks of an application, by handler reference. Made by `defineTasks`. */
export interface Tasks<Types extends TaskTypes> {
  /** Empty if the tasks were defined by their types alone. */
  readonly definitions: { readonly [Ref in keyof Types]?: TaskDefinition };
  /** Carries the types; absent when the program runs. */
  readonly '~types'?: Types;
}

type Definitions = Readonly<Record<string, StandardSchema | TaskDefinition>>;

type PayloadSchema<Given> = Given extends { payload: infer Schema } ? Schema : Given;
type ResultSchema<Given> = Given extends { result: infer Schema } ? Schema : undefined;
type InputOf<Schema> = Schema extends StandardSchema<infer Input, infer _> ? Input : unknown;
type OutputOf<Schema> = Schema extends StandardSchema<infer _, infer Output> ? Output : unknown;

export type TypesOfDefinitions<Given extends Definitions> = {
  [Ref in keyof Given & string]: {
    input: InputOf<PayloadSchema<Given[Ref]>>;
    output: OutputOf<PayloadSchema<Given[Ref]>>;
    returned: InputOf<ResultSchema<Given[Ref]>>;
    result: OutputOf<ResultSchema<Given[Ref]>>;
  };
};

/** Refuses settings that a definition does not have. */
type KnownSettings<Given> = {
  [Ref in keyof Given]: Given[Ref] extends StandardSchema
    ? Given[Ref]
    : { [Name in keyof Given[Ref]]: Name extends keyof TaskDefinition ? Given[Ref][Name] : never };
};

export type TypesOfPayloads<Payloads extends object> = {
  [Ref in keyof Payloads & string]: {
    input: Payloads[Ref];
    output: Payloads[Ref];
    returned: unknown;
    result: unknown;
  };
};

/**
 * Defines tasks by schemas, which check each payload when it is submitted and again when it is
 * handled: `defineTasks({ 'mail.send': { payload: z.object({ to: z.string() }), queue: 'mail' } })`.
 * A bare schema is the payload.
 */
export function defineTasks<const Given extends Definitions>(
  definitions: Given & KnownSettings<Given>,
): Tasks<TypesOfDefinitions<Given>>;
/** Defines tasks by types alone: `defineTasks<{ 'mail.send': { to: string } }>()`. */
export function defineTasks<Payloads extends object>(): Tasks<TypesOfPayloads<Payloads>>;
export function defineTasks(given: Definitions = {}): Tasks<TaskTypes> {
  const definitions: Record<string, TaskDefinition> = {};
  for (const [ref, definition] of Object.entries(given)) {
    definitions[ref] = isSchema(definition) ? { payload: definition } : checked(ref, definition);
  }
  return { definitions };
}

/** For programs without types. */
export function requireTasks(tasks: Tasks<TaskTypes> | undefined | null): void {
  if (typeof tasks?.definitions === 'object') return;
  throw new TypeError(
    "The second argument is what defineTasks returns, such as defineTasks({ 'mail.send': {} }).",
  );
}

function isSchema(given: StandardSchema | TaskDefinition): given is StandardSchema {
  return '~standard' in given;
}

const settings: readonly string[] = [
  'payload',
  'result',
  'queue',
  'maxAttempts',
  'backoff',
  'timeoutMs',
  'retainMs',
] satisfies (keyof TaskDefinition)[];

function checked(ref: string, definition: TaskDefinition): TaskDefinition {
  const unknown = Object.keys(definition).find((name) => !settings.includes(name));
  if (unknown === undefined) return definition;
  throw new TypeError(
    `The task ${ref} has the unknown setting ${unknown}; use ${settings.join(', ')}.`,
  );
}

export function definitionOf(
  { definitions }: Tasks<TaskTypes>,
  ref: string,
): TaskDefinition | undefined {
  return Object.hasOwn(definitions, ref) ? definitions[ref] : undefined;
}

/** The queues that definitions name. */
export function queuesOf(tasks: Tasks<TaskTypes>): string[] {
  requireTasks(tasks);
  const { definitions } = tasks;
  const named = Object.values(definitions).flatMap((definition) => definition?.queue ?? []);
  return [...new Set(named)];
}

function readResult(result: ValidationResult<unknown>, what: string): unknown {
  if (!result.issues) return result.value;
  const issues = result.issues.map((issue) => ({
    path: pathOfIssue(issue),
    message: issue.message,
  }));
  const text = result.issues.map(describeIssue).join('; ');
  throw new ValidationError(`${what} is not valid: ${text}`, issues);
}

async function validate(
  schema: StandardSchema | undefined,
  value: unknown,
  what: string,
): Promise<unknown> {
  return schema ? readResult(await schema['~standard'].validate(value), what) : value;
}

function knownDefinition(tasks: Tasks<TaskTypes>, ref: string): TaskDefinition | undefined {
  const definition = definitionOf(tasks, ref);
  const known = Object.keys(tasks.definitions);
  if (definition || known.length === 0) return definition;
  throw new ValidationError(`There is no task ${ref}; there are ${known.join(', ')}.`);
}

/** Checks a payload at its producer; throws a ValidationError. */
export async function checkPayload(
  tasks: Tasks<TaskTypes>,
  ref: string,
  payload: unknown,
): Promise<void> {
  await validate(knownDefinition(tasks, ref)?.payload, payload, `The payload of ${ref}`);
}

/** The same without waiting, which a schema with asynchronous checks cannot do. */
export function checkPayloadNow(tasks: Tasks<TaskTypes>, ref: string, payload: unknown): void {
  const result = knownDefinition(tasks, ref)?.payload?.['~standard'].validate(payload);
  if (!result) return;
  if (result instanceof Promise) {
    throw new ValidationError(`The schema of ${ref} is asynchronous; a transaction cannot wait.`);
  }
  readResult(result, `The payload of ${ref}`);
}

/** The payload as the schema of its task gives it back; throws a PermanentError. */
export async function readPayload(
  tasks: Tasks<TaskTypes>,
  ref: string,
  payload: unknown,
): Promise<unknown> {
  const schema = definitionOf(tasks, ref)?.payload;
  try {
    return await validate(schema, payload, `The payload of ${ref}`);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    throw new PermanentError(error.message, { cause: error });
  }
}

/** The result as its schema gives it back; throws a ValidationError. */
export function checkResult(
  tasks: Tasks<TaskTypes>,
  ref: string,
  result: unknown,
): Promise<unknown> {
  return validate(definitionOf(tasks, ref)?.result, result, `The result of ${ref}`);
}
