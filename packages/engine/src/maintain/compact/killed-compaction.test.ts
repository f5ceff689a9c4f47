import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { problemsOf } from '../../../test/consistency.test-support.js';
import { runUntilKilled } from '../../../test/killed-process.test-support.js';
import { useScratch } from '../../../test/scratch.test-support.js';
import type { CompactStage } from './compact.js';

const scratch = useScratch();
const collections = { items: { indexes: [{ fields: ['n'] }] } };

const moments: [CompactStage, number, object][] = [
  ['copy', 1, { tags: 'campaign-cases' }],
  ['copy', 4, {}],
  ['compare', 2, { tags: 'campaign-cases' }],
  ['hold', 1, {}],
  ['point', 1, {}],
  ['done', 1, { tags: 'campaign-cases' }],
];

for (const [stage, sight, options] of moments) {
  const title = `killed in a compaction at "${stage}" (sight ${sight})`;
  test(`${title}: one store is left, with every acknowledged write`, options, async () => {
    const db = await scratch.open({ collections });
    const items = db.collection<{ n: number }>('items');
    await Promise.all(Array.from({ length: 3_000 }, (_, n) => items.insertWithKey(`k${n}`, { n })));
    await db.close();
    const lines = await runUntilKilled(
      'test/killed-work.test-support.ts',
      'compactUntil',
      db.directory,
      stage,
      sight,
    );
    const again = await scratch.open({ collections }, db.directory);
    expect(readdirSync(db.directory).filter((name) => name.endsWith('.mdb'))).toHaveLength(1);
    const acked = new Map(lines.map((line) => line.split(' ') as [string, string]));
    if (stage !== 'copy') expect(acked.size).toBeGreaterThan(0);
    const found = again.collection<{ n: number }>('items');
    for (const [key, n] of acked) {
      expect((await found.findByKey(key))?.data.n).toBeGreaterThanOrEqual(Number(n));
    }
    expect(await found.count({ field: '$key', op: 'prefix', value: 'k' })).toBe(3_000);
    expect(problemsOf(again.core)).toEqual([]);
    await again.compact();
    expect((await again.verify()).problems).toEqual([]);
  });
}
