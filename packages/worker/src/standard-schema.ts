/**
 * The part of the Standard Schema interface (https://standardschema.dev) that is used here; Zod,
 * Valibot, ArkType and others implement it.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (
      value: unknown,
    ) => ValidationResult<Output> | Promise<ValidationResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type ValidationResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly ValidationIssue[] };

export interface ValidationIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The field of an issue: `to.0`; empty: the value itself. */
export function pathOfIssue({ path = [] }: ValidationIssue): string {
  return path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
}

/** The issue in words, with the name of the field: `to.0: Invalid email`. */
export function describeIssue(issue: ValidationIssue): string {
  const path = pathOfIssue(issue);
  return path === '' ? issue.message : `${path}: ${issue.message}`;
}
