import type { ErrorObject, ValidateFunction } from 'ajv';
import { nearest } from '../config/nearest.js';
import type { FieldError } from '../base/errors.js';
import { escapePointer } from './document.js';

/** How the members of the checked value are called in messages. */
export type Thing = 'field' | 'query parameter' | 'path parameter' | 'header';

/** Finds the validators of the branches of a `oneOf` or `anyOf`. */
export type BranchFinder = (branches: readonly object[]) => ValidateFunction[] | undefined;

/** Converts validator errors to messages for the client. */
export function explain(
  errors: readonly ErrorObject[],
  thing: Thing,
  findBranches: BranchFinder,
): FieldError[] {
  const faults = new Map<string, FieldError>();
  for (const error of settleChoices(errors, findBranches)) {
    const fault = explainOne(error, thing);
    if (fault) faults.set(`${fault.pointer} ${fault.message}`, fault);
  }
  return [...faults.values()];
}

/**
 * A failed `oneOf` or `anyOf` reports the errors of every branch. This selects those of the branch
 * that the client most likely meant.
 */
function settleChoices(errors: readonly ErrorObject[], findBranches: BranchFinder): ErrorObject[] {
  let left = [...errors];
  for (const choice of errors) {
    if (choice.keyword !== 'oneOf' && choice.keyword !== 'anyOf') continue;
    if (!left.includes(choice) || choice.params['passingSchemas']) continue;
    const branches = findBranches(choice.schema as readonly object[]);
    if (!branches) continue;
    const outcomes = branches.map((branch) => {
      branch(choice.data);
      return (branch.errors ?? []).map((error) => under(choice.instancePath, error));
    });
    left = left.filter((error) => !outcomes.flat().some((other) => sameError(error, other)));
    const better = preferredOutcome(choice, outcomes);
    if (better) left.splice(left.indexOf(choice), 1, ...settleChoices(better, findBranches));
  }
  // With a wrong type, other errors of the value are noise.
  const wrongTypes = new Set(
    left.filter((error) => error.keyword === 'type').map((error) => error.instancePath),
  );
  return left.filter((e) => e.keyword === 'type' || !wrongTypes.has(e.instancePath));
}

function under(path: string, error: ErrorObject): ErrorObject {
  return { ...error, instancePath: path + error.instancePath };
}

function sameError(a: ErrorObject, b: ErrorObject): boolean {
  return (
    a.keyword === b.keyword &&
    a.instancePath === b.instancePath &&
    a.parentSchema === b.parentSchema &&
    JSON.stringify(a.params) === JSON.stringify(b.params)
  );
}

/** The errors to show instead of the choice; undefined to show the choice itself. */
function preferredOutcome(
  choice: ErrorObject,
  outcomes: ErrorObject[][],
): ErrorObject[] | undefined {
  const root = choice.instancePath;
  const rightType = outcomes.filter((outcome) => !outcome.some((e) => isWrongType(e, root)));
  if (rightType.length === 0) {
    const types = outcomes.flat().filter((e) => isWrongType(e, root));
    const type = [...new Set(types.flatMap((e) => e.params['type'] as string | string[]))];
    return [{ ...types[0]!, params: { type } }];
  }
  if (rightType.length > 1 && rightType.every((outcome) => isWrongText(outcome, root))) {
    const forms = rightType.map(([fault]) => phrase(fault!).replace(/^must /, ''));
    return [{ ...choice, message: `must ${[...new Set(forms)].join(', or ')}`, keyword: 'forms' }];
  }
  const onlyRequired = rightType.every((outcome) => outcome.every((e) => e.keyword === 'required'));
  if (rightType.length > 1 && onlyRequired) return undefined;

  const tags = rightType.map((outcome) => outcome.filter((e) => isWrongTag(e, root)));
  const tagged = rightType.filter((_, index) => tags[index]!.length === 0);
  if (tagged.length === 0) {
    const wrong = tags.flat();
    const values = wrong.flatMap((e) => allowedValues(e));
    const { instancePath } = wrong[0]!;
    if (wrong.every((e) => e.instancePath === instancePath)) {
      return [{ ...wrong[0]!, keyword: 'enum', params: { allowedValues: [...new Set(values)] } }];
    }
    return undefined;
  }
  return tagged.reduce((best, outcome) => (outcome.length < best.length ? outcome : best));
}

function isWrongType(error: ErrorObject, root: string): boolean {
  return error.keyword === 'type' && error.instancePath === root;
}

/** True when only the format of a string is wrong: no branch is a better match. */
function isWrongText([fault, ...more]: readonly ErrorObject[], root: string): boolean {
  if (!fault || more.length > 0 || fault.instancePath !== root) return false;
  return fault.keyword === 'pattern' || fault.keyword === 'format';
}

/** A discriminator that does not match, at the top of a branch or one level below: `type: bearer`. */
function isWrongTag(error: ErrorObject, root: string): boolean {
  if (error.keyword !== 'const' && error.keyword !== 'enum') return false;
  return error.instancePath.slice(root.length).split('/').length <= 2;
}

function allowedValues(error: ErrorObject): unknown[] {
  if (error.keyword === 'const') return [error.params['allowedValue']];
  return error.params['allowedValues'] as unknown[];
}

function explainOne(error: ErrorObject, thing: Thing): FieldError | undefined {
  const { keyword, params, instancePath } = error;
  // The cause is a separate error.
  if (keyword === 'if' || keyword === 'propertyNames') return undefined;
  if (error.propertyName !== undefined) {
    const pointer = `${instancePath}/${escapePointer(error.propertyName)}`;
    return { pointer, message: `has a name that is not allowed: the name ${phrase(error)}` };
  }
  if (keyword === 'required' || keyword === 'dependentRequired') {
    const missing = params['missingProperty'] as string;
    const because = keyword === 'required' ? '' : ` beside ${params['property'] as string}`;
    const pointer = `${instancePath}/${escapePointer(missing)}`;
    return { pointer, message: `is required${because}` };
  }
  if (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties') {
    const name = (params['additionalProperty'] ?? params['unevaluatedProperty']) as string;
    const pointer = `${instancePath}/${escapePointer(name)}`;
    return { pointer, message: unknownName(name, knownNames(error), thing) };
  }
  return { pointer: instancePath, message: phrase(error) };
}

/** The search is slow for long names, and a body may contain any. */
function nearestName(typed: string, known: readonly string[]): string | undefined {
  return typed.length > 64 ? undefined : nearest(typed, known);
}

function knownNames(error: ErrorObject): string[] {
  const properties = error.parentSchema?.['properties'];
  return typeof properties === 'object' && properties !== null ? Object.keys(properties) : [];
}

export function unknownName(name: string, known: readonly string[], thing: Thing): string {
  const meant = nearestName(name, known);
  if (meant !== undefined) return `is not a known ${thing}; did you mean "${meant}"?`;
  if (known.length === 0) return `is not a known ${thing}; none is expected here`;
  const shown = known.slice(0, 16).join(', ');
  return `is not a known ${thing}; known are ${shown}${known.length > 16 ? ', ...' : ''}`;
}

function phrase(error: ErrorObject): string {
  const { keyword, params, data } = error;
  const limit = params['limit'] as number;
  switch (keyword) {
    case 'type':
      return `must be ${typeNames(params['type'] as string | string[])}, not ${kindOf(data)}`;
    case 'enum':
      return enumPhrase(params['allowedValues'] as unknown[], data);
    case 'const':
      return `must be ${show(params['allowedValue'])}`;
    case 'minimum':
      return `must be at least ${limit}`;
    case 'maximum':
      return `must be at most ${limit}`;
    case 'exclusiveMinimum':
      return `must be more than ${limit}`;
    case 'exclusiveMaximum':
      return `must be less than ${limit}`;
    case 'multipleOf':
      return `must be a multiple of ${params['multipleOf'] as number}`;
    case 'minLength':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} characters`;
    case 'maxLength':
      return `must have at most ${count(limit, 'character')}`;
    case 'pattern':
      return patternPhrase(error);
    case 'format':
      return formatHints[params['format'] as string] ?? `must be a ${params['format'] as string}`;
    case 'minItems':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} items`;
    case 'maxItems':
      return `must have at most ${count(limit, 'item')}`;
    case 'uniqueItems':
      return `must not repeat an item: ${params['i'] as number} and ${params['j'] as number} are equal`;
    case 'minProperties':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} fields`;
    case 'maxProperties':
      return `must have at most ${count(limit, 'field')}`;
    case 'oneOf':
    case 'anyOf':
      return choicePhrase(error);
    case 'false schema':
    case 'not': {
      const other = /\/dependentSchemas\/([^/]+)\//.exec(error.schemaPath)?.[1];
      return `is not allowed ${other === undefined ? 'here' : `beside ${other}`}`;
    }
    default:
      return error.message ?? `fails "${keyword}"`;
  }
}

/** A schema can describe its pattern: `x-pattern-message: must be a ULID`. */
function patternPhrase(error: ErrorObject): string {
  const message = error.parentSchema?.['x-pattern-message'] as unknown;
  if (typeof message === 'string') return message;
  return `must match ${error.params['pattern'] as string}${examplesOf(error)}`;
}

function examplesOf({ parentSchema }: ErrorObject): string {
  const examples = parentSchema?.['examples'] as unknown;
  return Array.isArray(examples) ? ` such as ${examples.map(show).join(', ')}` : '';
}

function choicePhrase(error: ErrorObject): string {
  const how = error.keyword === 'oneOf' ? 'exactly one' : 'at least one';
  const lists = (error.schema as { required?: unknown }[]).map((branch) => branch.required);
  if (lists.every((list): list is string[] => Array.isArray(list))) {
    const forms = lists.map((list) => list.join(' with '));
    return `needs ${how} of ${forms.join(', ')}`;
  }
  if (error.params['passingSchemas']) return 'fits more than one of the allowed forms';
  return `must fit ${how} of the allowed forms`;
}

function enumPhrase(allowed: readonly unknown[], data: unknown): string {
  const names = allowed.filter((value) => typeof value === 'string');
  const meant = typeof data === 'string' ? nearestName(data, names) : undefined;
  const hint = meant === undefined ? '' : `; did you mean "${meant}"?`;
  return `must be one of ${allowed.map(show).join(', ')}${hint}`;
}

const typeNameOf: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
  null: 'null',
};

function typeNames(types: string | string[]): string {
  return [types]
    .flat()
    .map((type) => typeNameOf[type] ?? type)
    .join(' or ');
}

function kindOf(data: unknown): string {
  if (data === null) return 'null';
  if (Array.isArray(data)) return 'a list';
  if (typeof data === 'number') return String(data);
  if (typeof data === 'boolean') return String(data);
  if (typeof data === 'string') return data.length <= 32 ? JSON.stringify(data) : 'a string';
  return 'an object';
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** Messages for values that do not match a format. */
const formatHints: Readonly<Record<string, string>> = {
  'date-time': 'must be an RFC 3339 timestamp such as 2030-01-31T09:30:00Z',
  date: 'must be a date such as 2030-01-31',
  byte: 'must be padded base64 (RFC 4648)',
  uri: 'must be an absolute URL such as https://example.org/path',
  url: 'must be an absolute URL such as https://example.org/path',
  'uri-reference': 'must be a URL or a path',
  email: 'must be an e-mail address',
  hostname: 'must be a host name',
  ipv4: 'must be an IPv4 address',
  ipv6: 'must be an IPv6 address',
  uuid: 'must be a UUID',
  int32: 'must fit 32 bits',
  int64: 'must fit 64 bits',
};
