import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from '@millrace/engine';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { campaignSize } from '../../../test/support/campaign.js';
import { storeProblems } from '../src/storage/embedded/verify.js';
import { openEmbeddedStore } from '../src/storage/embedded/open.js';
import { MemoryStore } from './support/memory-store/index.js';
import { flowOperations, ModelRun, operations } from './task-store/model-run.js';

const runs = Number(process.env['MILLRACE_RUNS'] ?? campaignSize({ quick: 20, full: 60 }));

test.each([
  ['tasks', operations],
  ['flows', flowOperations],
])('model: the embedded store returns the same as the memory store, %s', async (_of, some) => {
  await fc.assert(
    fc.asyncProperty(some, async (list) => {
      const directory = mkdtempSync(join(tmpdir(), 'millrace-queue-'));
      const store = await openEmbeddedStore(directory, {
        clock: systemClock,
        random: systemRandom,
        log: silentLog,
      });
      try {
        await new ModelRun(new MemoryStore(), store).run(list);
        await store.close();
        expect(await problemsIn(directory)).toEqual([]);
      } finally {
        await store.close();
        rmSync(directory, { recursive: true, force: true });
      }
    }),
    { numRuns: runs },
  );
});

async function problemsIn(directory: string): Promise<string[]> {
  const database = await open(directory);
  try {
    return database.readRows(storeProblems);
  } finally {
    await database.close();
  }
}
