import { expect, test } from 'vitest';
import { bytesOf, hexOf, jsonOf, textOf } from './content.js';

const encode = (text: string) => new TextEncoder().encode(text);

test('textOf: pretty-prints JSON, shows other text as it is', () => {
  expect(textOf(encode('{"a":1}'))?.shown).toBe('{\n  "a": 1\n}');
  expect(textOf(encode('a letter'))?.shown).toBe('a letter');
  expect(textOf(new Uint8Array([0xff, 0xfe]))).toBeUndefined();
});

test('textOf: cuts what would freeze the page', () => {
  const long = textOf(encode('x'.repeat(20_001)))!;
  expect([long.shown.length, long.isCut]).toEqual([20_000, true]);
});

test('jsonOf: null is a value', () => {
  expect(jsonOf('null')).toEqual({ value: null });
  expect(jsonOf('{')).toBeUndefined();
});

test('hexOf: offset, bytes and readable characters', () => {
  const { text, isCut } = hexOf(encode('{"to":"Ada ♥"}'));
  expect(text).toBe(
    '00000000  7b 22 74 6f 22 3a 22 41 64 61 20 e2 99 a5 22 7d  |{"to":"Ada ..."}|',
  );
  expect(isCut).toBe(false);
  expect(hexOf(new Uint8Array(5_000)).isCut).toBe(true);
});

test('bytesOf: decodes base64', () => {
  expect([...bytesOf('AP8=')]).toEqual([0, 255]);
});
