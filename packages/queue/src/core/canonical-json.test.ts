import { expect, test } from 'vitest';
import { canonicalJson } from './audit.js';

test('the example of RFC 8785 comes out as it does there', () => {
  const value = JSON.parse(String.raw`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  }`) as unknown;
  expect(canonicalJson(value)).toBe(
    '{"literals":[null,true,false],' +
      '"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
      String.raw`"string":"€$\u000f\nA'B\"\\\\\"/"}`,
  );
});

test('keys are in the order of their UTF-16 units', () => {
  const keys = ['\u20ac', '\r', '\ufb33', '1', '\ud83d\ude00', '\u0080', '\u00f6'];
  const text = canonicalJson(Object.fromEntries(keys.map((key) => [key, 0])));
  expect(Object.keys(JSON.parse(text) as object)).toHaveLength(7);
  expect(text.indexOf('\ud83d')).toBeLessThan(text.indexOf('\ufb33'));
  expect(text.startsWith(String.raw`{"\r":0,"1":0,`)).toBe(true);
});

test('the order in which a value was put together does not show', () => {
  const one = canonicalJson({ a: { y: 1, x: [{ b: 2, a: 1 }] }, b: undefined });
  expect(one).toBe(canonicalJson({ a: { x: [{ a: 1, b: 2 }], y: 1 } }));
});

test.each([NaN, Infinity, undefined, () => 1])('%s has no JSON', (value) => {
  expect(() => canonicalJson([value])).toThrow(TypeError);
});
