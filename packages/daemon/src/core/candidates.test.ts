import fc from 'fast-check';
import { expect, test } from 'vitest';
import { firstSettings, newBackend, candidates, type Backend, type Tier } from './backend.js';

const now = 1_000_000;

function backend(id: string, more: Partial<Backend> = {}): Backend {
  const found = newBackend({ id, installed: true, binaryPath: `/bin/${id}` }, 0);
  return { ...found, tier: id === 'local' ? 'local' : 'free', ...more };
}

function walkOf(backends: Backend[], mode = firstSettings.internal_thinking_mode): string[] {
  const settings = { ...firstSettings, internal_thinking_mode: mode };
  return candidates({ backends, settings }, now).map(({ id }) => id);
}

test('free backends come by id, the default before them, local last', () => {
  const backends = [backend('local'), backend('b'), backend('a'), backend('c', { default: true })];
  expect(walkOf(backends)).toEqual(['c', 'a', 'b', 'local']);
});

test('local_only is local alone', () => {
  expect(walkOf([backend('a'), backend('local')], 'local_only')).toEqual(['local']);
});

test('ids are compared by their characters, not by any language', () => {
  expect(walkOf([backend('b'), backend('B'), backend('a-1'), backend('a.1')])).toEqual([
    'B',
    'a-1',
    'a.1',
    'b',
  ]);
});

test.each([
  ['not installed', { installed: false }],
  ['disabled', { enabled: false }],
  ['limited', { limited_until: now + 1 }],
  ['a subscription', { tier: 'subscription' as const }],
  ['paid by use', { tier: 'pay_per_use' as const }],
  ['unclassified', { tier: 'unclassified' as const }],
])('a backend that is %s is passed over, even the default', (_, more) => {
  expect(walkOf([backend('a', { default: true, ...more }), backend('b')])).toEqual(['b']);
});

test('a cooldown is over at its very moment', () => {
  expect(walkOf([backend('a', { limited_until: now })])).toEqual(['a']);
});

test('candidates: local is one even if it was not detected, unless it is disabled', () => {
  expect(walkOf([backend('local', { installed: false })])).toEqual(['local']);
  expect(walkOf([backend('local', { enabled: false })])).toEqual([]);
});

test('no walk of any registry reaches a paid backend', () => {
  const tier = fc.constantFrom<Tier>('free', 'subscription', 'pay_per_use', 'unclassified');
  const any = fc.record({
    tier,
    installed: fc.boolean(),
    enabled: fc.boolean(),
    default: fc.boolean(),
    limited_until: fc.constantFrom(0, now - 1, now, now + 1),
  });
  fc.assert(
    fc.property(fc.array(any, { maxLength: 8 }), fc.boolean(), (rows, isLocalOnly) => {
      const backends = rows.map((row, index) => backend(`b${index}`, row));
      const ids = walkOf(
        [...backends, backend('local')],
        isLocalOnly ? 'local_only' : 'free_plus_local',
      );
      expect(ids.at(-1)).toBe('local');
      for (const id of ids.slice(0, -1)) {
        expect(backends.find((each) => each.id === id)?.tier).toBe('free');
      }
    }),
  );
});
