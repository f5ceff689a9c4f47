import { expect, test } from 'vitest';
import { QueueHistory, rateText } from './rates.js';

const mail = (pending: number) => [{ name: 'mail', pending, inFlight: 1, dead: 2 }];

test('the rate is the net change over the time it was seen', () => {
  const history = new QueueHistory();
  history.see(0, mail(100));
  expect(history.rateOf('mail')).toBeUndefined();
  history.see(2_000, mail(60));
  expect(history.rateOf('mail')).toBe(-20);
  history.see(2_000, mail(0));
  expect(history.rateOf('mail')).toBe(-20);
});

test('what was seen long ago counts for no rate, and later for nothing', () => {
  const history = new QueueHistory();
  history.see(0, mail(0));
  history.see(60_000, mail(600));
  expect(history.rateOf('mail')).toBeUndefined();
  expect(history.of('mail')).toEqual([
    { at: 0, pending: 0, inFlight: 1, dead: 2 },
    { at: 60_000, pending: 600, inFlight: 1, dead: 2 },
  ]);
  history.see(1_000_000, mail(1));
  expect(history.of('mail')).toHaveLength(1);
});

test('a queue that is gone is forgotten', () => {
  const history = new QueueHistory();
  history.see(0, mail(0));
  history.see(1_000, []);
  history.see(2_000, mail(5));
  expect(history.rateOf('mail')).toBeUndefined();
});

test.each([
  [undefined, '–'],
  [0, '±0'],
  [-0.01, '±0'],
  [3.21, '+3.2/s'],
  [-1234.5, '−1,235/s'],
])('%s reads %s', (rate, text) => {
  expect(rateText(rate)).toBe(text);
});
