import { Refusal } from '@millrace/kit/errors';
import { suggestion } from '@millrace/kit/nearest';
import { formatTimestamp } from '@millrace/kit/units';
import { compileElementTest } from '../value/predicate.js';
import { jsonForm, refuse, toDocument, type Json, type JsonObject } from '../value/documents.js';
import { compareValues, equalValues } from '../value/order.js';

/*
 * Update operators: `{ $inc: { n: 1 }, $set: { 'a.b': 'x' } }`. Paths are those of filters, except
 * that they reach one value: a number selects an element of an array. What is on the way and not
 * there is created as an object. Operators are applied in the order in which they are given.
 */

/** An update that was checked once and may be applied to many documents. */
export interface CheckedUpdate {
  /** The document after the update; the given one is not changed. Throws TYPE_MISMATCH. */
  apply(document: JsonObject, now: number): JsonObject;
}

/** The value at a path after an operator, from the value before; undefined: none. */
type Change = (before: Json | undefined, path: string, now: number) => Json | undefined;

interface Step {
  path: string;
  segments: readonly string[];
  /** False: a missing value stays missing, and nothing is created on the way. */
  creates: boolean;
  change: Change;
}

type Operator = (argument: unknown, path: string) => Omit<Step, 'path' | 'segments'>;

const maxPathLength = 1024;
const maxPaths = 1_000;

const operators: Readonly<Record<string, Operator>> = {
  $set: (argument, path) => {
    const value = json(argument, path);
    return { creates: true, change: () => value };
  },
  $unset: (argument, path) => {
    if (argument !== true) throw bad(path, 'must be true in $unset');
    return { creates: false, change: () => undefined };
  },
  $inc: arithmetic('$inc', (before, by) => before + by),
  $mul: arithmetic('$mul', (before, by) => before * by),
  $min: extreme((order) => order < 0),
  $max: extreme((order) => order > 0),
  $push: push,
  $addToSet: addToSet,
  $pull: pull,
  $currentDate: (argument, path) => {
    if (argument !== true) throw bad(path, 'must be true in $currentDate');
    return { creates: true, change: (_before, _path, now) => formatTimestamp(now) };
  },
};

const operatorNames = [...Object.keys(operators), '$rename'];

/** Checks an update; throws BAD_UPDATE that names the path. */
export function parseUpdate(input: unknown): CheckedUpdate {
  try {
    return parse(input);
  } catch (error) {
    // A value or condition inside it that a document or filter could not have either.
    if (!(error instanceof Refusal) || error.code === 'BAD_UPDATE') throw error;
    throw refuse('BAD_UPDATE', error.detail);
  }
}

function parse(input: unknown): CheckedUpdate {
  if (!isObject(input)) throw refuse('BAD_UPDATE', 'The update must be an object of operators.');
  const steps: ((document: JsonObject, now: number) => JsonObject)[] = [];
  const paths: string[][] = [];
  for (const [name, argument] of Object.entries(input)) {
    const entries = entriesOf(name, argument);
    if (paths.length + entries.length > maxPaths) {
      throw refuse('BAD_UPDATE', `The update has more than ${maxPaths} paths.`);
    }
    for (const [path, value] of entries) {
      const segments = segmentsOf(path);
      paths.push(segments);
      if (name === '$rename') {
        const target = segmentsOf(value, path);
        paths.push(target);
        steps.push((document) => rename(document, segments, target, path));
        continue;
      }
      const step = { path, segments, ...operators[name]!(value, path) };
      steps.push((document, now) => changeAt(document, step, now));
    }
  }
  if (steps.length === 0) throw refuse('BAD_UPDATE', 'The update has no operator.');
  refuseOverlap(paths);
  return { apply: (document, now) => steps.reduce((last, step) => step(last, now), document) };
}

function entriesOf(name: string, argument: unknown): [string, unknown][] {
  if (!operatorNames.includes(name)) {
    const near = suggestion(name, operatorNames);
    throw refuse(
      'BAD_UPDATE',
      `"${name}" is not an operator${near || '.'} Known are ${operatorNames.join(', ')}.`,
    );
  }
  if (name === '$unset' && Array.isArray(argument)) return argument.map((path) => [path, true]);
  if (isObject(argument)) return Object.entries(argument);
  throw refuse('BAD_UPDATE', `${name} must be an object of paths and values.`);
}

function segmentsOf(path: unknown, place = String(path)): string[] {
  if (typeof path !== 'string' || path === '') throw bad(place, 'is not a path');
  if (path.length > maxPathLength)
    throw bad(`${path.slice(0, 40)}...`, `has more than ${maxPathLength} characters`);
  const segments = path.split('.');
  if (segments.includes('')) throw bad(path, 'has an empty part');
  if (segments[0]!.startsWith('$'))
    throw bad(path, 'begins with "$": a record\'s own fields cannot be written');
  if (segments.includes('__proto__')) throw bad(path, 'has a part that is not allowed');
  return segments;
}

/** No two paths are the same, or one the beginning of the other. */
function refuseOverlap(paths: readonly (readonly string[])[]): void {
  const sorted = paths.map((path) => path.join('\0')).toSorted();
  for (let i = 1; i < sorted.length; i++) {
    const [one, other] = [sorted[i - 1]!, sorted[i]!];
    const isSame = one === other;
    if (!isSame && !other.startsWith(`${one}\0`)) continue;
    const name = other.replaceAll('\0', '.');
    const parent = one.replaceAll('\0', '.');
    const problem = isSame ? 'is written twice' : `is inside "${parent}", which is written, too`;
    throw bad(name, `${problem}; use two updates`);
  }
}

function changeAt(document: JsonObject, step: Step, now: number): JsonObject {
  return changeIn(document, step, 0, now) as JsonObject;
}

/** A copy of the containers on the way to the value, changed; the same one when nothing changes. */
function changeIn(container: JsonObject | Json[], step: Step, depth: number, now: number): Json {
  const { segments, path, change, creates } = step;
  const name = segments[depth]!;
  const before = memberOf(container, name, path);
  const isLast = depth === segments.length - 1;
  let after: Json | undefined;
  if (isLast) after = change(before, path, now);
  else if (typeof before === 'object' && before !== null) {
    after = changeIn(before, step, depth + 1, now);
  } else if (!creates) return container;
  else if (before === undefined) after = changeIn({}, step, depth + 1, now);
  else {
    const at = segments.slice(0, depth + 1).join('.');
    throw mismatch(path, `"${at}" is ${kindOf(before)}, which has no fields`);
  }
  if (after === before) return container;
  return withMember(container, name, after, path);
}

function memberOf(container: JsonObject | Json[], name: string, path: string): Json | undefined {
  if (Array.isArray(container)) return container[indexOf(name, path)];
  return Object.hasOwn(container, name) ? container[name] : undefined;
}

function withMember(
  container: JsonObject | Json[],
  name: string,
  value: Json | undefined,
  path: string,
): Json {
  if (Array.isArray(container)) {
    const index = indexOf(name, path);
    if (index > container.length) {
      throw mismatch(path, `the array has ${container.length} elements; ${index} is past its end`);
    }
    const copy = [...container];
    // Without an element, those behind it would move.
    copy[index] = value === undefined ? null : value;
    return copy;
  }
  const copy: JsonObject = { ...container };
  if (value === undefined) delete copy[name];
  else copy[name] = value;
  return copy;
}

function indexOf(name: string, path: string): number {
  if (!/^(?:0|[1-9]\d{0,8})$/.test(name)) {
    throw mismatch(path, `"${name}" is applied to an array; give the number of an element`);
  }
  return Number(name);
}

function rename(
  document: JsonObject,
  from: readonly string[],
  to: readonly string[],
  path: string,
): JsonObject {
  let value: Json | undefined;
  const take: Change = (before) => {
    value = before;
    return undefined;
  };
  const without = changeAt(document, { path, segments: from, creates: false, change: take }, 0);
  if (value === undefined) return document;
  const put: Step = { path: to.join('.'), segments: to, creates: true, change: () => value };
  return changeAt(without, put, 0);
}

function arithmetic(name: string, compute: (before: number, by: number) => number): Operator {
  return (argument, path) => {
    if (typeof argument !== 'number' || !Number.isFinite(argument)) {
      throw bad(path, `must be a number in ${name}`);
    }
    return {
      creates: true,
      change: (before = 0) => {
        if (typeof before !== 'number')
          throw mismatch(path, `is ${kindOf(before)}, and ${name} needs a number`);
        const after = compute(before, argument);
        if (!Number.isFinite(after))
          throw mismatch(path, `${name} gives a number that is too large`);
        // JSON has no negative zero.
        return after === 0 ? 0 : after;
      },
    };
  };
}

function extreme(isTaken: (order: number) => boolean): Operator {
  return (argument, path) => {
    const value = json(argument, path);
    return {
      creates: true,
      change: (before) =>
        before === undefined || isTaken(compareValues(value, before)) ? value : before,
    };
  };
}

interface Several {
  each: Json[];
  slice?: number;
  order?: (a: Json, b: Json) => number;
}

function push(argument: unknown, path: string): ReturnType<Operator> {
  const { each, slice, order } = severalOf(argument, path, '$push', ['each', 'slice', 'sort']);
  return {
    creates: true,
    change: (before) => {
      let list = [...arrayOf(before, path, '$push'), ...each];
      if (order) list = list.toSorted(order);
      if (slice === undefined) return list;
      return slice < 0 ? list.slice(slice) : list.slice(0, slice);
    },
  };
}

function addToSet(argument: unknown, path: string): ReturnType<Operator> {
  const { each } = severalOf(argument, path, '$addToSet', ['each']);
  return {
    creates: true,
    change: (before) => {
      const list = [...arrayOf(before, path, '$addToSet')];
      for (const value of each) {
        if (!list.some((known) => equalValues(known, value))) list.push(value);
      }
      return before !== undefined && list.length === (before as Json[]).length ? before : list;
    },
  };
}

/** A value, or `{ each: [...] }` with what else the operator takes. */
function severalOf(
  argument: unknown,
  path: string,
  name: string,
  known: readonly string[],
): Several {
  if (!isObject(argument) || !Object.hasOwn(argument, 'each')) {
    const operator = isObject(argument) && Object.keys(argument).find(isOperatorName);
    if (operator) throw bad(path, `has "${operator}" in ${name}${hintOf(operator, known)}`);
    return { each: [json(argument, path)] };
  }
  for (const field of Object.keys(argument)) {
    if (!known.includes(field)) {
      throw bad(
        path,
        `has "${field}" beside "each" in ${name}${suggestion(field, known)}; known are ${known.join(', ')}`,
      );
    }
  }
  const { each, slice, sort } = argument;
  if (!Array.isArray(each)) throw bad(path, `"each" must be an array in ${name}`);
  if (slice !== undefined && !Number.isSafeInteger(slice))
    throw bad(path, '"slice" must be a whole number');
  return {
    each: json(each, path) as Json[],
    ...(slice !== undefined && { slice: slice as number }),
    ...(sort !== undefined && { order: orderOf(sort, path) }),
  };
}

/** Only bytes are stored under such a name; an element with another one is meant as an operator. */
function isOperatorName(name: string): boolean {
  return name.startsWith('$') && name !== '$bytes';
}

function hintOf(operator: string, known: readonly string[]): string {
  const plain = operator.slice(1);
  return known.includes(plain) ? `; write it without "$": ${plain}` : '';
}

function orderOf(sort: unknown, path: string): (a: Json, b: Json) => number {
  if (sort === 1 || sort === -1) return (a, b) => sort * compareValues(a, b);
  const entries = isObject(sort) ? Object.entries(sort) : [];
  if (entries.length === 0 || entries.some(([, way]) => way !== 1 && way !== -1)) {
    throw bad(path, '"sort" must be 1, -1 or an object of fields with 1 or -1');
  }
  const fields = entries.map(([field, way]) => ({
    segments: segmentsOf(field),
    way: way as number,
  }));
  return (a, b) => {
    for (const { segments, way } of fields) {
      const order = compareValues(valueAt(a, segments), valueAt(b, segments));
      if (order !== 0) return way * order;
    }
    return 0;
  };
}

function valueAt(value: Json, segments: readonly string[]): Json | undefined {
  let at: Json | undefined = value;
  for (const name of segments) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as JsonObject)[name];
  }
  return at;
}

/** Removes the elements that equal a value, or that match a condition as in filters. */
function pull(argument: unknown, path: string): ReturnType<Operator> {
  const isPulled = elementTest(argument, path);
  return {
    creates: false,
    change: (before) => {
      if (before === undefined) return undefined;
      const list = arrayOf(before, path, '$pull');
      const left = list.filter((element) => !isPulled(element));
      return left.length === list.length ? before : left;
    },
  };
}

function elementTest(argument: unknown, path: string): (element: Json) => boolean {
  const value = json(argument, path);
  const isCondition = isObject(argument) && !jsonForm(argument) && !('$bytes' in argument);
  if (!isCondition) return (element) => equalValues(element, value);
  if (Object.keys(argument).length === 0) throw bad(path, 'has an empty condition in $pull');
  return compileElementTest(value, `$pull of "${path}"`);
}

function arrayOf(value: Json | undefined, path: string, name: string): readonly Json[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw mismatch(path, `is ${kindOf(value)}, and ${name} needs an array`);
}

/** A copy of a value, checked like one of a document. */
function json(value: unknown, path: string): Json {
  if (value === undefined) throw bad(path, 'has no value');
  return toDocument({ [path]: value }, 'update')[path]!;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function kindOf(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  return typeof value === 'string' ? 'a text' : `a ${typeof value}`;
}

function bad(path: string, problem: string): Error {
  return refuse('BAD_UPDATE', `The path "${path}" ${problem}.`);
}

function mismatch(path: string, problem: string): Error {
  const text = problem.startsWith('is ')
    ? `The value of "${path}" ${problem}.`
    : `The path "${path}": ${problem}.`;
  return refuse('TYPE_MISMATCH', text, { path });
}
