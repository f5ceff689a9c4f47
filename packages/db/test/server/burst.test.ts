import { connect } from '@millrace/db';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from './support/server.js';

let server: TestServer;

beforeAll(async () => {
  server = await startServer({ 'shed-target-ms': '1000' });
});
afterAll(() => server?.dispose());

test('burst: 5,000 concurrent inserts of one client all succeed', async () => {
  const db = await connect(`grpc://${server.grpc}`, { timeoutMs: 300_000 });
  try {
    const burst = db.collection('burst');
    await Promise.all(Array.from({ length: 5_000 }, (_, n) => burst.insert({ n })));
    expect(await burst.count()).toBe(5_000);
  } finally {
    await db.close();
  }
});
