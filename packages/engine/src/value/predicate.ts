import type { Json, JsonObject } from './documents.js';
import {
  elementConditions,
  foldText,
  lastSigma,
  typeNames,
  type Condition,
  type FieldTest,
  type FilterField,
} from './filter.js';
import { compareText, compareValues, equalValues, ordersByUnit, rankOf, ranks } from './order.js';
import { anyText, anyValue, type Path, type Row } from './path.js';
import { compileRegex } from './regex.js';

export type Predicate<Subject = Row> = (subject: Subject) => boolean;
type ValueTest = (value: Json) => boolean;

/** Compiles a condition to a test of a record. */
export function compilePredicate(condition: Condition): Predicate {
  return compileWith<Path, Row>(condition, anyOfPath);
}

/**
 * Compiles a condition for any kind of subject. `anyOf` turns a field and a test of one value into
 * a test of the subject: does any value of the field pass? It returns false for a missing field;
 * `ne`, `nin` and `exists: false` are negations, so only they match a missing one.
 */
export function compileWith<Field extends FilterField, Subject>(
  condition: Condition<Field>,
  anyOf: (field: Field, test: ValueTest) => Predicate<Subject>,
): Predicate<Subject> {
  switch (condition.kind) {
    case 'all':
      return () => true;
    case 'not':
      return negate(compileWith(condition.part, anyOf));
    case 'and':
      return allOf(condition.parts.map((part) => compileWith(part, anyOf)));
    case 'or':
      return someOf(condition.parts.map((part) => compileWith(part, anyOf)));
    case 'test':
      return compileTest(condition, anyOf);
  }
}

function compileTest<Field extends FilterField, Subject>(
  { field, op, value }: FieldTest<Field>,
  anyOf: (field: Field, test: ValueTest) => Predicate<Subject>,
): Predicate<Subject> {
  switch (op) {
    case 'eq':
      return anyOf(field, equalTo(value));
    case 'ne':
      return negate(anyOf(field, equalTo(value)));
    case 'in':
      return anyOf(field, oneOf(value as Json[]));
    case 'nin':
      return negate(anyOf(field, oneOf(value as Json[])));
    case 'exists': {
      const present = anyOf(field, () => true);
      return value ? present : negate(present);
    }
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return anyOf(field, comparison(op, value));
    case 'between':
      return anyOf(field, between(value as Json[]));
    case 'contains':
      return anyOf(field, containing(value));
    case 'prefix': {
      const start = value as string;
      return anyOf(field, (found) => typeof found === 'string' && found.startsWith(start));
    }
    case 'eqi': {
      const folded = foldText(value as string);
      return anyOf(field, (found) => typeof found === 'string' && foldText(found) === folded);
    }
    case 'startsWithi': {
      const start = foldText(value as string);
      const other = start.replace(lastSigma, (sigma) => (sigma === 'σ' ? 'ς' : 'σ'));
      return anyOf(field, (found) => {
        if (typeof found !== 'string') return false;
        const folded = foldText(found);
        return folded.startsWith(start) || folded.startsWith(other);
      });
    }
    case 'elemMatch': {
      const matches = compileElementTest(value, 'elemMatch');
      return anyOf(field, (found) => Array.isArray(found) && found.some(matches));
    }
    case 'all': {
      const tests = (value as Json[]).map(equalTo);
      return anyOf(
        field,
        (found) => Array.isArray(found) && tests.every((test) => found.some(test)),
      );
    }
    case 'size':
      return anyOf(field, (found) => Array.isArray(found) && found.length === value);
    case 'type': {
      const rank = typeNames.indexOf(value as (typeof typeNames)[number]) + 1;
      return anyOf(field, (found) => rankOf(found) === rank);
    }
    case 'regex': {
      const matches = compileRegex(value as string, (problem) => new Error(problem));
      return anyOf(field, (found) => typeof found === 'string' && matches(found));
    }
  }
}

/** Compiles a condition on elements of an array, as in `elemMatch` and `$pull`. */
export function compileElementTest(condition: Json, place: string): ValueTest {
  const { element, fields } = elementConditions(condition, place);
  const matchesElement = element && compilePredicate(element);
  const matchesFields = fields && compilePredicate(fields);
  return (found) => {
    if (matchesFields && rankOf(found) === ranks.object) {
      return matchesFields(rowOf(found as JsonObject));
    }
    return matchesElement !== undefined && matchesElement(rowOf({ e: found }));
  };
}

/** A document without a record around it. */
export function rowOf(data: JsonObject): Row {
  const times = { createdAt: 0, updatedAt: 0, expiresAt: 0 };
  const top = (field: string) => (Object.hasOwn(data, field) ? data[field] : undefined);
  return { id: '', key: '', rev: 0, seq: 0, ...times, data, top };
}

/** A test that only one text can pass. */
type TextTest = ValueTest & { readonly only?: string };

function anyOfPath(path: Path, test: TextTest): Predicate {
  return test.only === undefined ? anyValue(path, test) : anyText(path, test.only);
}

function negate<Subject>(predicate: Predicate<Subject>): Predicate<Subject> {
  return (subject) => !predicate(subject);
}

// Two and three parts are by far the most frequent, and chained calls are faster than a loop.
function allOf<Subject>(parts: Predicate<Subject>[]): Predicate<Subject> {
  const [first, second, third] = parts;
  if (!first) return () => true;
  if (!second) return first;
  if (!third) return (subject) => first(subject) && second(subject);
  if (parts.length === 3) return (subject) => first(subject) && second(subject) && third(subject);
  return (subject) => {
    for (const part of parts) if (!part(subject)) return false;
    return true;
  };
}

function someOf<Subject>(parts: Predicate<Subject>[]): Predicate<Subject> {
  const [first, second] = parts;
  if (!first) return () => false;
  if (!second) return first;
  if (parts.length === 2) return (subject) => first(subject) || second(subject);
  return (subject) => {
    for (const part of parts) if (part(subject)) return true;
    return false;
  };
}

function equalTo(value: Json): TextTest {
  if (typeof value === 'string') {
    return Object.assign((found: Json) => found === value, { only: value });
  }
  if (typeof value !== 'object' || value === null) return (found) => found === value;
  return (found) => typeof found === 'object' && equalValues(found, value);
}

function oneOf(values: readonly Json[]): ValueTest {
  // A set compares like `===`, and treats -0 as 0.
  const plain = new Set<Json>(
    values.filter((value) => typeof value !== 'object' || value === null),
  );
  const nested = values.filter((value) => typeof value === 'object' && value !== null);
  if (nested.length === 0) return (found) => plain.has(found);
  return (found) => plain.has(found) || nested.some((value) => equalValues(found, value));
}

type Comparison = 'gt' | 'gte' | 'lt' | 'lte';

function comparison(op: Comparison, value: Json): ValueTest {
  if (typeof value === 'number') return numberComparison(op, value);
  if (typeof value === 'string') return textComparison(op, value);
  const rank = rankOf(value);
  const holds = signTest(op);
  return (found) => rankOf(found) === rank && holds(compareValues(found, value));
}

function numberComparison(op: Comparison, value: number): ValueTest {
  switch (op) {
    case 'gt':
      return (found) => typeof found === 'number' && found > value;
    case 'gte':
      return (found) => typeof found === 'number' && found >= value;
    case 'lt':
      return (found) => typeof found === 'number' && found < value;
    case 'lte':
      return (found) => typeof found === 'number' && found <= value;
  }
}

function textComparison(op: Comparison, value: string): ValueTest {
  if (!ordersByUnit(value)) {
    const holds = signTest(op);
    return (found) => typeof found === 'string' && holds(compareText(found, value));
  }
  switch (op) {
    case 'gt':
      return (found) => typeof found === 'string' && found > value;
    case 'gte':
      return (found) => typeof found === 'string' && found >= value;
    case 'lt':
      return (found) => typeof found === 'string' && found < value;
    case 'lte':
      return (found) => typeof found === 'string' && found <= value;
  }
}

function signTest(op: Comparison): (order: number) => boolean {
  switch (op) {
    case 'gt':
      return (order) => order > 0;
    case 'gte':
      return (order) => order >= 0;
    case 'lt':
      return (order) => order < 0;
    case 'lte':
      return (order) => order <= 0;
  }
}

function between([low, high]: readonly Json[]): ValueTest {
  if (typeof low === 'number' && typeof high === 'number') {
    return (found) => typeof found === 'number' && found >= low && found <= high;
  }
  const fromLow = comparison('gte', low!);
  const toHigh = comparison('lte', high!);
  return (found) => fromLow(found) && toHigh(found);
}

function containing(value: Json): ValueTest {
  const equal = equalTo(value);
  if (typeof value !== 'string') return (found) => Array.isArray(found) && found.some(equal);
  return (found) =>
    typeof found === 'string' ? found.includes(value) : Array.isArray(found) && found.some(equal);
}
