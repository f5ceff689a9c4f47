import { expect, test } from 'vitest';
import { timeoutMsOf } from './transport.js';

test('a timeout has up to 8 digits and a unit', () => {
  const known: [text: string, ms: number][] = [
    ['2H', 7_200_000],
    ['3M', 180_000],
    ['15S', 15_000],
    ['250m', 250],
    ['1500u', 1.5],
    ['1n', 1e-6],
    ['0m', 0],
    ['99999999H', 99_999_999 * 3_600_000],
  ];
  for (const [text, ms] of known) expect(timeoutMsOf(text)).toBeCloseTo(ms, 9);
});

test.each(['', '5', 'S', '1s', '1h', '100000000m', '-1S', '1.5S', '1 S', ' 1S', '1S ', '0x1S'])(
  '"%s" is no timeout',
  (text) => {
    expect(timeoutMsOf(text)).toBeUndefined();
  },
);
