import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from '@millrace/engine';
import { expect, test } from 'vitest';
import { newPipeline, type Pipeline, type PipelineState } from '../core/pipeline.js';
import { PipelineStore } from './store.js';

function made(id: string, status: Pipeline['status']): PipelineState {
  const definition = { name: 'n', start: true, jobs: [{ id: 'a', prompt: 'x' }] };
  const fresh = newPipeline(definition, { id, now: 0 });
  return { ...fresh, pipeline: { ...fresh.pipeline, status } };
}

test('of many pipelines the newest 500 are kept, and all that are not over', async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-pipeline-store-'));
  const database = await open(home, { durability: 'relaxed' });
  try {
    const store = new PipelineStore(database);
    await store.insert(made('p000', 'stalled'));
    for (let n = 1; n < 505; n++) {
      await store.insert(made(`p${String(n).padStart(3, '0')}`, n % 2 ? 'done' : 'canceled'));
    }
    const ids = (await store.list()).map(({ id }) => id);
    expect([ids.length, ids[0], ids.at(-2), ids.at(-1)]).toEqual([500, 'p504', 'p006', 'p000']);
    expect(await store.find('p003')).toBeUndefined();
    expect(await database.collection('pipeline_states').count()).toBe(500);
  } finally {
    await database.close();
    rmSync(home, { recursive: true, force: true });
  }
});
