import { PermanentError } from './errors.js';
import { describeIssue, type StandardSchema } from './standard-schema.js';

/** What is submitted for a task, and what its handler receives. */
export interface TaskType {
  input: unknown;
  output: unknown;
}

export type TaskTypes = Record<string, TaskType>;

/** The tasks of an application, by handler reference. Made by `defineTasks`. */
export interface Tasks<Types extends TaskTypes> {
  /** Empty if the tasks were defined by their types alone. */
  readonly schemas: { readonly [Ref in keyof Types]?: StandardSchema };
  /** Carries the types; absent when the program runs. */
  readonly '~types'?: Types;
}

type Schemas = Readonly<Record<string, StandardSchema>>;

export type TypesOfSchemas<Given extends Schemas> = {
  [Ref in keyof Given & string]: Given[Ref] extends StandardSchema<infer Input, infer Output>
    ? { input: Input; output: Output }
    : never;
};

export type TypesOfPayloads<Payloads extends object> = {
  [Ref in keyof Payloads & string]: { input: Payloads[Ref]; output: Payloads[Ref] };
};

/**
 * Defines tasks by schemas, which check each payload when it is submitted and again when it is
 * handled: `defineTasks({ 'mail.send': z.object({ to: z.string() }) })`.
 */
export function defineTasks<const Given extends Schemas>(
  schemas: Given,
): Tasks<TypesOfSchemas<Given>>;
/** Defines tasks by types alone: `defineTasks<{ 'mail.send': { to: string } }>()`. */
export function defineTasks<Payloads extends object>(): Tasks<TypesOfPayloads<Payloads>>;
export function defineTasks(schemas: Schemas = {}): Tasks<TaskTypes> {
  return { schemas };
}

/** The payload as the schema of its task gives it back; throws a PermanentError. */
export async function validatePayload(
  { schemas }: Tasks<TaskTypes>,
  ref: string,
  payload: unknown,
): Promise<unknown> {
  const schema = Object.hasOwn(schemas, ref) ? schemas[ref] : undefined;
  if (!schema) return payload;
  const result = await schema['~standard'].validate(payload);
  if (!result.issues) return result.value;
  const issues = result.issues.map(describeIssue).join('; ');
  throw new PermanentError(`The payload of ${ref} is not valid: ${issues}`);
}
