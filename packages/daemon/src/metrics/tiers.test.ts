import fc from 'fast-check';
import { expect, test } from 'vitest';
import { maxSamples, stepFor, stretchesOf, tiers } from './tiers.js';

const now = Date.parse('2026-01-15T09:30:07.500Z');
const hour = 3_600_000;
const day = 24 * hour;

test('without a step the finest is taken that fits', () => {
  const seconds = (span: number) => stepFor(undefined, now - span, now) / 1000;
  expect(seconds(hour)).toBe(15);
  expect(seconds(6 * hour)).toBe(15);
  expect(seconds(day)).toBe(60);
  expect(seconds(7 * day)).toBe(420);
  expect(seconds(56 * day)).toBe(3600);
  // 1,500 steps of 15 seconds, of which the first and the last are cut.
  expect(seconds(22_500_000)).toBe(30);
});

test('a step that fits is kept as it is, and one that is too fine is widened', () => {
  const seconds = (step: number, span: number) => stepFor(step * 1000, now - span, now) / 1000;
  expect(seconds(90, day)).toBe(90);
  expect(seconds(20, hour)).toBe(20);
  expect(seconds(5, hour)).toBe(15);
  expect(seconds(15, day)).toBe(60);
  expect(seconds(86_400, hour)).toBe(86_400);
  expect(seconds(60, -hour)).toBe(60);
});

test('no answer has more than 1,500 samples, and no moment is read twice or left out', () => {
  const spans = fc.integer({ min: 0, max: 57 * day });
  const steps = fc.option(fc.integer({ min: 1, max: 200_000 }), { nil: undefined });
  fc.assert(
    fc.property(spans, steps, (span, step) => {
      const from = now - span;
      const stepMs = stepFor(step === undefined ? undefined : step * 1000, from, now);
      const touched = Math.floor(now / stepMs) - Math.floor(from / stepMs) + 1;
      expect(touched).toBeLessThanOrEqual(maxSamples);
      const stretches = stretchesOf(from, now, stepMs, now);
      expect(stretches.length).toBeLessThan(12);
      let at = from;
      for (const { tier, from: start, to } of stretches) {
        expect(start).toBe(at);
        expect(to).toBeGreaterThan(start);
        expect(start).toBeGreaterThanOrEqual(now - tier.retentionMs);
        // The next begins where a row of this tier does: no row reaches over.
        if (to !== now) expect(to % tier.widthMs).toBe(0);
        at = to;
      }
      expect(at).toBe(Math.max(now, from));
    }),
    { numRuns: 500 },
  );
});

test('a long span is read from rows that are as wide as a step allows', () => {
  const wide = stretchesOf(now - 56 * day, now, hour, now);
  expect(wide.map(({ tier }) => tier.letter)).toEqual(['t', 't', 't', 't'].slice(0, wide.length));
  const day15 = stretchesOf(now - day, now, 90_000, now);
  expect(day15.map(({ tier }) => tier.letter)).toEqual(['m', 'r']);
  expect(tiers.map(({ widthMs }) => widthMs)).toEqual([15_000, 60_000, 600_000]);
});
