// @module-tag campaign-store
import { vi } from 'vitest';
import type * as supportServer from '../support/server.js';

// The contract test as it is, with a server on PostgreSQL wherever it asks for any server.
vi.mock('../support/server.js', async (importOriginal) => {
  const real = await importOriginal<typeof supportServer>();
  const { freshStore } = await import('./fresh-store.js');
  const startTestServer: typeof real.startTestServer = async (options) =>
    real.startTestServer({ ...options, store: options?.store ?? (await freshStore()) });
  return { ...real, startTestServer };
});

await import('../contract.test.js');
