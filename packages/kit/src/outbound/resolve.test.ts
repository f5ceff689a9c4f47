import { expect, test } from 'vitest';
import { systemClock } from '../base/clock-and-random.js';
import { sharedLookups, systemResolver, type Resolver } from './target.js';

function heldResolver() {
  const lookups: { host: string; answer: (addresses: string[]) => void; fail: () => void }[] = [];
  const resolver: Resolver = (host) =>
    new Promise((resolve, reject) => {
      lookups.push({ host, answer: resolve, fail: () => reject(new Error('SERVFAIL')) });
    });
  return { lookups, resolver };
}

test('lookups of one name at the same time share one answer', async () => {
  const { lookups, resolver } = heldResolver();
  const lookup = sharedLookups(resolver, systemClock);
  const both = Promise.all([lookup('a.test'), lookup('a.test')]);
  const other = lookup('b.test');
  expect(lookups.map(({ host }) => host)).toEqual(['a.test', 'b.test']);
  lookups[0]?.answer(['192.0.2.1']);
  lookups[1]?.answer(['192.0.2.2']);
  expect(await both).toEqual([['192.0.2.1'], ['192.0.2.1']]);
  expect(await other).toEqual(['192.0.2.2']);
});

test('a result is never cached', async () => {
  const { lookups, resolver } = heldResolver();
  const lookup = sharedLookups(resolver, systemClock);
  const first = lookup('a.test');
  lookups[0]?.answer(['192.0.2.1']);
  await first;
  const second = lookup('a.test');
  lookups[1]?.answer(['192.0.2.2']);
  expect(await second).toEqual(['192.0.2.2']);
});

test('a failure is shared and then forgotten', async () => {
  const { lookups, resolver } = heldResolver();
  const lookup = sharedLookups(resolver, systemClock);
  const both = Promise.allSettled([lookup('a.test'), lookup('a.test')]);
  lookups[0]?.fail();
  expect((await both).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  void lookup('a.test');
  expect(lookups).toHaveLength(2);
});

test('a lookup that is stuck does not hold later ones for good', async () => {
  let now = 0;
  const { lookups, resolver } = heldResolver();
  const lookup = sharedLookups(resolver, { ...systemClock, monotonic: () => now });
  const stuck = lookup('a.test');
  now = 4_999;
  void lookup('a.test');
  expect(lookups).toHaveLength(1);
  now = 5_000;
  const fresh = lookup('a.test');
  expect(lookups).toHaveLength(2);
  lookups[0]?.answer(['192.0.2.1']);
  await stuck;
  void lookup('a.test');
  expect(lookups).toHaveLength(2);
  lookups[1]?.answer(['192.0.2.2']);
  expect(await fresh).toEqual(['192.0.2.2']);
});

test('the system resolver knows localhost', async () => {
  const addresses = await systemResolver('localhost');
  expect(addresses.some((address) => ['127.0.0.1', '::1'].includes(address))).toBe(true);
});
