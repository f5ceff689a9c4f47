import { expect, test } from 'vitest';
import { QueueHistory, rateText } from './rates.js';

const mail = (pending: number) => [{ name: 'mail', pending, inFlight: 1, dead: 2 }];

test('rateOf: net change per second between the last two samples', () => {
  const history = new QueueHistory();
  history.record(0, mail(100));
  expect(history.rateOf('mail')).toBeUndefined();
  history.record(2_000, mail(60));
  expect(history.rateOf('mail')).toBe(-20);
  history.record(2_000, mail(0));
  expect(history.rateOf('mail')).toBe(-20);
});

test('rateOf: negative as soon as the queue drains', () => {
  const history = new QueueHistory();
  history.record(0, mail(0));
  history.record(3_000, mail(4_500));
  history.record(6_000, mail(2_550));
  expect(history.rateOf('mail')).toBe(-650);
});

test('history: samples far apart give no rate, old samples are dropped', () => {
  const history = new QueueHistory();
  history.record(0, mail(0));
  history.record(60_000, mail(600));
  expect(history.rateOf('mail')).toBeUndefined();
  expect(history.of('mail')).toEqual([
    { at: 0, pending: 0, inFlight: 1, dead: 2 },
    { at: 60_000, pending: 600, inFlight: 1, dead: 2 },
  ]);
  history.record(1_000_000, mail(1));
  expect(history.of('mail')).toHaveLength(1);
});

test('history: a deleted queue starts over', () => {
  const history = new QueueHistory();
  history.record(0, mail(0));
  history.record(1_000, []);
  history.record(2_000, mail(5));
  expect(history.rateOf('mail')).toBeUndefined();
});

test('history: survives a reload, and a text that is none of its own', () => {
  const history = new QueueHistory();
  history.record(0, mail(100));
  history.record(2_000, mail(60));
  expect(QueueHistory.fromJSON(JSON.stringify(history)).rateOf('mail')).toBe(-20);
  expect(QueueHistory.fromJSON('{').of('mail')).toEqual([]);
  expect(QueueHistory.fromJSON(null).of('mail')).toEqual([]);
});

test.each([
  [undefined, '–'],
  [0, '±0'],
  [-0.01, '±0'],
  [3.21, '+3.2/s'],
  [-1234.5, '−1,235/s'],
])('rateText: %s is shown as %s', (rate, text) => {
  expect(rateText(rate)).toBe(text);
});
