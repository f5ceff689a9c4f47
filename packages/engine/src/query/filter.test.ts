import { describe, expect, test } from 'vitest';
import { cpuMsOf } from '../../../../test/support/cpu-time.js';
import type { Json, JsonObject } from '../value/documents.js';
import { conditionText, parseFilter, type Filter } from '../value/filter.js';
import { idOf, imageOf, type TestRecord } from './memory-view.test-support.js';
import { compilePredicate } from '../value/predicate.js';

const compileFilter = (filter: unknown) => compilePredicate(parseFilter(filter));

function matches(data: JsonObject, filter: Filter, own: Partial<TestRecord> = {}): boolean {
  return compileFilter(filter)(imageOf({ id: idOf(1), data, ...own }));
}
const holds = (data: JsonObject, field: string, op: string, value?: Json) =>
  matches(data, { field, op, value } as Filter);

describe('types are strict', () => {
  test('no op matches across types', () => {
    for (const op of ['eq', 'gt', 'gte', 'lt', 'lte']) {
      expect(holds({ a: '5' }, 'a', op, 5), op).toBe(false);
      expect(holds({ a: 5 }, 'a', op, '5'), op).toBe(false);
      expect(holds({ a: null }, 'a', op, 0), op).toBe(false);
      expect(holds({ a: true }, 'a', op, 1), op).toBe(false);
      expect(holds({ a: [5] }, 'a', op, 5), op).toBe(false);
      expect(holds({ a: {} }, 'a', op, []), op).toBe(false);
    }
    expect(holds({ a: '5' }, 'a', 'in', [5, null])).toBe(false);
    expect(holds({ a: '5' }, 'a', 'between', [1, 9])).toBe(false);
    expect(holds({ a: 5 }, 'a', 'contains', '5')).toBe(false);
    expect(holds({ a: 55 }, 'a', 'prefix', '5')).toBe(false);
    expect(holds({ a: 55 }, 'a', 'regex', '5')).toBe(false);
  });

  test('ne and nin are the negations of eq and in, so another type passes', () => {
    expect(holds({ a: '5' }, 'a', 'ne', 5)).toBe(true);
    expect(holds({ a: '5' }, 'a', 'nin', [5])).toBe(true);
    expect(holds({ a: 5 }, 'a', 'ne', 5)).toBe(false);
    expect(holds({ a: 5 }, 'a', 'nin', [4, 5])).toBe(false);
  });
});

test('a missing field matches only ne, nin and exists:false', () => {
  const values: Record<string, Json> = {
    eq: null,
    gt: null,
    gte: null,
    lt: 5,
    lte: 5,
    in: [null],
    exists: true,
    contains: 'a',
    prefix: '',
    regex: '',
    between: [1, 2],
  };
  for (const [op, value] of Object.entries(values))
    expect(holds({}, 'a', op, value), op).toBe(false);
  expect(holds({}, 'a', 'ne', 5)).toBe(true);
  expect(holds({}, 'a', 'nin', [5])).toBe(true);
  expect(holds({}, 'a', 'exists', false)).toBe(true);
  expect(holds({ a: null }, 'a', 'exists', false)).toBe(false);
  expect(holds({ a: null }, 'a', 'eq', null)).toBe(true);
});

describe('each op', () => {
  test('eq compares whole values, of an object whatever the order of its fields', () => {
    expect(holds({ a: { x: 1, y: [2] } }, 'a', 'eq', { y: [2], x: 1 })).toBe(true);
    expect(holds({ a: ['x', 'y'] }, 'a', 'eq', ['x', 'y'])).toBe(true);
    expect(holds({ a: ['x', 'y'] }, 'a', 'eq', ['y', 'x'])).toBe(false);
    expect(holds({ a: ['x', 'y'] }, 'a', 'eq', 'x')).toBe(false);
    expect(holds({ a: 0 }, 'a', 'eq', -0)).toBe(true);
    expect(holds({ a: 'ü', b: 1 }, 'a', 'eq', 'ü')).toBe(true);
    expect(holds({ a: false }, 'a', 'eq', false)).toBe(true);
  });

  test('gt, gte, lt and lte compare within a type', () => {
    expect(holds({ a: 5 }, 'a', 'gt', 5)).toBe(false);
    expect(holds({ a: 5 }, 'a', 'gte', 5)).toBe(true);
    expect(holds({ a: 4 }, 'a', 'lt', 5)).toBe(true);
    expect(holds({ a: 5 }, 'a', 'lte', 5)).toBe(true);
    expect(holds({ a: true }, 'a', 'gt', false)).toBe(true);
    expect(holds({ a: null }, 'a', 'gte', null)).toBe(true);
    expect(holds({ a: [1, 2] }, 'a', 'gt', [1])).toBe(true);
    expect(holds({ a: { b: 2 } }, 'a', 'gt', { b: 1 })).toBe(true);
  });

  test('strings order by code point', () => {
    expect(holds({ a: '\u{1F600}' }, 'a', 'gt', '\u{FFFD}')).toBe(true);
    expect(holds({ a: '\u{FFFD}' }, 'a', 'lt', '\u{1F600}')).toBe(true);
    expect(holds({ a: '\u{1F600}' }, 'a', 'gt', 'z')).toBe(true);
    expect(holds({ a: 'Z' }, 'a', 'lt', 'a')).toBe(true);
    expect(holds({ a: '\u{1F600}' }, 'a', 'between', ['\u{FFFD}', '\u{10FFFF}'])).toBe(true);
  });

  test('between includes both ends', () => {
    expect(holds({ a: 1 }, 'a', 'between', [1, 3])).toBe(true);
    expect(holds({ a: 3 }, 'a', 'between', [1, 3])).toBe(true);
    expect(holds({ a: 3.1 }, 'a', 'between', [1, 3])).toBe(false);
    expect(holds({ a: 'b' }, 'a', 'between', ['a', 'b'])).toBe(true);
    expect(holds({ a: 2 }, 'a', 'between', [3, 1])).toBe(false);
  });

  test('in and nin take lists of any values', () => {
    expect(holds({ a: 5 }, 'a', 'in', ['x', 5])).toBe(true);
    expect(holds({ a: [1] }, 'a', 'in', [[1], { b: 1 }])).toBe(true);
    expect(holds({ a: 5 }, 'a', 'in', [])).toBe(false);
    expect(holds({ a: 5 }, 'a', 'nin', [])).toBe(true);
  });

  test('exists asks for the field whatever its value, true when not said', () => {
    expect(holds({ a: null }, 'a', 'exists', true)).toBe(true);
    expect(holds({ a: 0 }, 'a', 'exists')).toBe(true);
    expect(holds({}, 'a', 'exists')).toBe(false);
  });

  test('contains is a part of a string or an element of an array', () => {
    expect(holds({ a: 'abc' }, 'a', 'contains', 'bc')).toBe(true);
    expect(holds({ a: 'abc' }, 'a', 'contains', 'cb')).toBe(false);
    expect(holds({ a: ['abc', 1] }, 'a', 'contains', 'abc')).toBe(true);
    expect(holds({ a: ['abc', 1] }, 'a', 'contains', 'ab')).toBe(false);
    expect(holds({ a: ['abc', 1] }, 'a', 'contains', 1)).toBe(true);
    expect(holds({ a: [{ x: 1 }, null] }, 'a', 'contains', { x: 1 })).toBe(true);
    expect(holds({ a: [{ x: 1 }, null] }, 'a', 'contains', null)).toBe(true);
    expect(holds({ a: [[1]] }, 'a', 'contains', 1)).toBe(false);
  });

  test('prefix is the beginning of a string, its case counts', () => {
    expect(holds({ a: 'Ada' }, 'a', 'prefix', 'Ad')).toBe(true);
    expect(holds({ a: 'Ada' }, 'a', 'prefix', 'ad')).toBe(false);
    expect(holds({ a: 'Ada' }, 'a', 'prefix', '')).toBe(true);
    expect(holds({ a: ['Ada'] }, 'a', 'prefix', 'A')).toBe(false);
  });

  test('regex is unanchored RE2 syntax', () => {
    expect(holds({ a: 'the gray cat' }, 'a', 'regex', 'gr[ae]y')).toBe(true);
    expect(holds({ a: 'the gray cat' }, 'a', 'regex', '^gr[ae]y')).toBe(false);
    expect(holds({ a: 'GRAY' }, 'a', 'regex', '(?i)gray')).toBe(true);
    expect(holds({ a: 'Ωmega' }, 'a', 'regex', '^\\p{Greek}')).toBe(true);
    expect(holds({ a: '\u{1F600}' }, 'a', 'regex', '^.$')).toBe(true);
  });

  test('regex takes time in proportion to the text, whatever the pattern', async () => {
    const text = 'a'.repeat(50_000) + '!';
    const cpuMs = await cpuMsOf(() => {
      expect(holds({ a: text }, 'a', 'regex', '^(a+)+$')).toBe(false);
      expect(holds({ a: text }, 'a', 'regex', '(a|aa|a?)*b')).toBe(false);
    });
    expect(cpuMs).toBeLessThan(5_000);
  });
});

describe('paths', () => {
  const data: JsonObject = {
    address: { city: 'Paris', '0': 'zero' },
    tags: ['x', 'y'],
    items: [{ sku: 'a', n: 1 }, { sku: 'b', n: 9 }, 'loose'],
    grid: [[{ v: 1 }], [{ v: 2 }, { v: 3 }]],
  };

  test('are dotted', () => {
    expect(holds(data, 'address.city', 'eq', 'Paris')).toBe(true);
    expect(holds(data, 'address.city.name', 'exists', false)).toBe(true);
    expect(holds(data, 'address', 'exists')).toBe(true);
  });

  test('through an array match any element', () => {
    expect(holds(data, 'items.sku', 'eq', 'b')).toBe(true);
    expect(holds(data, 'items.sku', 'eq', 'c')).toBe(false);
    expect(holds(data, 'items.sku', 'ne', 'b')).toBe(false);
    expect(holds(data, 'items.n', 'gt', 5)).toBe(true);
    expect(holds(data, 'items.none', 'exists', false)).toBe(true);
    expect(holds(data, 'grid.v', 'eq', 3)).toBe(true);
    // Each condition may be met by another element.
    const both: Filter = {
      and: [
        { field: 'items.n', op: 'gt', value: 5 },
        { field: 'items.n', op: 'lt', value: 5 },
      ],
    };
    expect(matches(data, both)).toBe(true);
    expect(holds(data, 'items.n', 'between', [4, 6])).toBe(false);
  });

  test('pick one element by a number, and on an object take it as a name', () => {
    expect(holds(data, 'tags.1', 'eq', 'y')).toBe(true);
    expect(holds(data, 'tags.2', 'exists')).toBe(false);
    expect(holds(data, 'items.0.sku', 'eq', 'b')).toBe(false);
    expect(holds(data, 'grid.1.0.v', 'eq', 2)).toBe(true);
    expect(holds(data, 'grid.1.v', 'eq', 3)).toBe(true);
    expect(holds(data, 'address.0', 'eq', 'zero')).toBe(true);
  });

  test('see only what the document itself has', () => {
    for (const name of ['constructor', 'toString', '__proto__', 'a.constructor']) {
      expect(holds({ a: {} }, name, 'exists'), name).toBe(false);
    }
    expect(holds({ constructor: 5 }, 'constructor', 'eq', 5)).toBe(true);
    expect(holds({ tags: [1] }, 'tags.length', 'exists')).toBe(false);
  });
});

describe('the record’s own fields', () => {
  const own = { key: 'k', rev: 3, createdAt: Date.UTC(2030, 0, 31, 12), updatedAt: 1500 };
  const check = (field: string, op: string, value?: Json) =>
    matches({ $id: 'not this' }, { field, op, value } as Filter, own);

  test('are $id, $key and $rev', () => {
    expect(check('$id', 'eq', idOf(1))).toBe(true);
    expect(check('$key', 'prefix', 'k')).toBe(true);
    expect(check('$rev', 'gte', 3)).toBe(true);
    expect(check('$rev', 'eq', '3')).toBe(false);
    expect(matches({}, { field: '$key', op: 'eq', value: '' })).toBe(true);
    expect(check('$seq', 'eq', 1)).toBe(true);
  });

  test('are times, compared as times with RFC 3339 text', () => {
    expect(check('$created_at', 'eq', '2030-01-31T12:00:00Z')).toBe(true);
    expect(check('$created_at', 'eq', '2030-01-31T13:00:00.000+01:00')).toBe(true);
    expect(check('$created_at', 'gt', '2030-01-31T11:59:59.999999Z')).toBe(true);
    expect(check('$created_at', 'lt', '2030-01-31T12:00:00.000001Z')).toBe(true);
    expect(check('$updated_at', 'between', ['1970-01-01T00:00:01Z', '1970-01-01T00:00:02Z'])).toBe(
      true,
    );
    expect(check('$updated_at', 'in', ['1970-01-01T00:00:01.5Z'])).toBe(true);
    expect(check('$expires_at', 'exists', false)).toBe(true);
  });
});

describe('conditions', () => {
  const a: Filter = { field: 'a', op: 'eq', value: 1 };
  const b: Filter = { field: 'b', op: 'eq', value: 1 };

  test('compose with and, or, not', () => {
    expect(matches({ a: 1, b: 1 }, { and: [a, b] })).toBe(true);
    expect(matches({ a: 1 }, { and: [a, b] })).toBe(false);
    expect(matches({ b: 1 }, { or: [a, b] })).toBe(true);
    expect(matches({}, { or: [a, b] })).toBe(false);
    expect(matches({}, { not: a })).toBe(true);
    expect(matches({ a: 1 }, { not: { not: a } })).toBe(true);
    const many = Array.from({ length: 5 }, (_, i): Filter => ({ field: `f${i}`, op: 'exists' }));
    expect(matches({ f3: 1 }, { or: many })).toBe(true);
    expect(matches({ f3: 1 }, { and: many })).toBe(false);
    expect(matches({ f0: 1, f1: 1, f2: 1 }, { and: many.slice(0, 3) })).toBe(true);
  });

  test('match all when empty', () => {
    expect(compileFilter(undefined)(imageOf({ id: idOf(1), data: {} }))).toBe(true);
    expect(matches({}, {})).toBe(true);
    expect(matches({}, { and: [] })).toBe(true);
    expect(matches({}, { and: [{}, {}] })).toBe(true);
  });

  test('must all hold when given together', () => {
    expect(matches({ a: 1, b: 1 }, { ...a, and: [b] })).toBe(true);
    expect(matches({ a: 1 }, { ...a, and: [b] })).toBe(false);
    expect(matches({ a: 1 }, { ...a, or: [b, a], not: b })).toBe(true);
  });

  test('say the same as plain data when they mean the same', () => {
    const text = (filter: Filter) => JSON.stringify(conditionText(parseFilter(filter)));
    expect(text({ and: [a, { and: [b] }] })).toBe(text({ ...a, and: [b] }));
    expect(text({ or: [a, b] })).not.toBe(text({ and: [a, b] }));
    expect(text({ not: a })).not.toBe(text(a));
  });
});

describe('a bad filter is refused with its place', () => {
  const refused = (filter: unknown) => {
    try {
      compileFilter(filter);
    } catch (error) {
      return (error as Error).message;
    }
    return 'accepted';
  };
  const leaf = (op: unknown, value?: unknown) => ({ field: 'a', op, value });

  test.each<[unknown, string]>([
    ['text', 'filter must be an object such as {"field", "op", "value"}, not a string'],
    [null, 'filter must be an object'],
    [[], 'not an empty list'],
    [
      { and: [{}, leaf('equals', 1)] },
      'filter.and[1].op "equals" is unknown; it must be one of eq',
    ],
    [leaf('gtt', 1), 'did you mean "gt"?'],
    [leaf('$where', 'x'), 'filter.op "$where" is unknown'],
    [{ field: 'a', value: 1 }, 'filter.op must be one of eq, ne'],
    [{ op: 'eq', value: 1 }, 'filter.field must be the path of a field, not nothing'],
    [{ value: 1 }, 'filter.field must be'],
    [{ feild: 'a', op: 'eq' }, 'has an unknown member "feild"; did you mean "field"?'],
    [
      { age: { gt: 30 } },
      'member "age"; a condition is {"field": "age", "op": "eq", "value": ...}',
    ],
    [{ and: {} }, 'filter.and must be a list of conditions, not an object'],
    [{ or: [] }, 'filter.or is empty'],
    [{ or: [leaf('eq', 1), null] }, 'filter.or[1] must be an object'],
    [{ not: [] }, 'filter.not must be an object'],
    [leaf('eq'), 'filter.value is missing'],
    [leaf('in', 5), 'filter.value must be a list for in, not 5'],
    [leaf('nin', {}), 'filter.value must be a list for nin'],
    [leaf('between', [1]), 'filter.value must be [low, high] for between, not a list of 1'],
    [leaf('between', [1, '2']), 'must be two values of one type, not 1 and a string'],
    [leaf('exists', 'yes'), 'filter.value must be true or false for exists'],
    [leaf('prefix', 5), 'filter.value must be a string for prefix, not 5'],
    [leaf('regex', null), 'filter.value must be a string for regex, not null'],
    [
      leaf('regex', 'a(b'),
      'filter.value is not RE2 syntax: missing closing ): a(b (at character 1)',
    ],
    [leaf('regex', 'x(?=y)'), 'invalid or unsupported Perl syntax: (?= (at character 2)'],
    [leaf('regex', '(a)\\1'), 'invalid escape sequence: \\1 (at character 4)'],
    [leaf('regex', 'a'.repeat(1001)), 'is longer than 1000 characters'],
    [leaf('eq', NaN), 'has a number that JSON does not have: NaN'],
    [leaf('eq', '\ud800'), 'lone surrogate'],
    [leaf('eq', () => 1), 'has a function, which JSON does not have'],
    [{ field: '', op: 'exists' }, 'filter.field is empty'],
    [{ field: 'a..b', op: 'exists' }, 'filter.field has an empty part between its dots: "a..b"'],
    [{ field: '$ids', op: 'exists' }, 'did you mean "$id"?'],
    [{ field: '$id.x', op: 'exists' }, 'filter.field is not one of $id, $key'],
    [{ field: 'x'.repeat(1025), op: 'exists' }, 'has more than 1024 characters'],
    [{ field: '$created_at', op: 'gt', value: 'soon' }, 'must be an RFC 3339 time such as'],
    [{ field: '$created_at', op: 'gt', value: 5 }, 'for gt on $created_at, not 5'],
    [{ field: '$updated_at', op: 'prefix', value: '2030' }, '$updated_at is a time, use between'],
    [{ field: '$updated_at', op: 'contains', value: '2030' }, 'cannot be used with contains'],
  ])('%j', (filter, text) => {
    expect(refused(filter)).toContain('BAD_FILTER: ');
    expect(refused(filter)).toContain(text);
  });

  test('in one sentence, a question where it guesses', () => {
    expect(refused(leaf('gtt', 1))).toMatch(/; did you mean "gt"\?$/);
    expect(refused(leaf('like', 1))).toMatch(/, startsWithi\.$/);
  });

  test('when it is too deep, too large or lists too much', () => {
    const nested = (depth: number): Filter => (depth === 1 ? {} : { not: nested(depth - 1) });
    expect(refused(nested(32))).toBe('accepted');
    expect(refused(nested(33))).toContain('is nested deeper than 32 levels');
    const wide = (count: number) => ({ and: Array.from({ length: count }, () => leaf('eq', 1)) });
    expect(refused(wide(999))).toBe('accepted');
    expect(refused(wide(1000))).toContain('filter has more than 1000 conditions');
    const list = (count: number) =>
      leaf(
        'in',
        Array.from({ length: count }, (_, i) => i),
      );
    expect(refused(list(10_000))).toBe('accepted');
    expect(refused(list(10_001))).toContain('has 10001 values, at most 10000 are possible');
    const deep = (depth: number): Json => (depth === 0 ? 1 : [deep(depth - 1)]);
    expect(refused(leaf('eq', deep(32)))).toBe('accepted');
    expect(refused(leaf('eq', deep(33)))).toContain('is nested deeper than 32 levels');
  });
});
