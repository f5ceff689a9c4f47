import { expect, test } from 'vitest';
import { tokenize, unquote } from './tokens.js';

test('words are cut at spaces, but not inside quotes and JSON', () => {
  const cases: [string, string[]][] = [
    ['', []],
    ['  find   people ', ['find', 'people']],
    [
      'put people ada {"name": "Ada L.", "tags": ["a b"]}',
      ['put', 'people', 'ada', '{"name": "Ada L.", "tags": ["a b"]}'],
    ],
    ['find people name="Ada L." age>30', ['find', 'people', 'name="Ada L."', 'age>30']],
    ["get people 'a key'", ['get', 'people', "'a key'"]],
    ['find people name="a \\" b"', ['find', 'people', 'name="a \\" b"']],
    ['tags=[1, 2] x', ['tags=[1, 2]', 'x']],
    ["name=O'Brien city=Bern", ["name=O'Brien", 'city=Bern']],
    ['name=a[1 b', ['name=a[1', 'b']],
  ];
  for (const [text, words] of cases) {
    expect(tokenize(text), text).toEqual({ words, isOpen: false });
  }
});

test('an open bracket or quote waits for the next line', () => {
  for (const text of ['{"a":', 'put p k {"a": [1,', 'name="a', "get people 'a", '{"a": "}"']) {
    expect(tokenize(text).isOpen, text).toBe(true);
  }
  expect(tokenize('put p k {"a": [1,\n2]}')).toEqual({
    words: ['put', 'p', 'k', '{"a": [1,\n2]}'],
    isOpen: false,
  });
});

test('quotes around a whole word are not part of it', () => {
  expect(unquote('"a \\"b\\""')).toBe('a "b"');
  expect(unquote("'a b'")).toBe('a b');
  expect(unquote('a="b"')).toBe('a="b"');
  expect(unquote('"C:\\dir"')).toBe('C:\\dir');
});
