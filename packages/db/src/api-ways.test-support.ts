import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Refusal } from '@millrace/kit/errors';
import { afterEach } from 'vitest';
import type { DatabaseApi } from './client/api.js';
import { useServers } from './client/server.test-support.js';
import { connect, open } from './index.js';

/** Databases in process and on a server, closed after each test. */
export function useDatabases(): [string, () => Promise<DatabaseApi>][] {
  const servers = useServers();
  const directories: string[] = [];
  const databases: DatabaseApi[] = [];
  afterEach(async () => {
    for (const database of databases.splice(0)) await database.close();
    for (const made of directories.splice(0)) rmSync(made, { recursive: true, force: true });
  });
  const opened = async () => {
    const directory = mkdtempSync(join(tmpdir(), 'millrace-api-'));
    directories.push(directory);
    return open(directory);
  };
  const ways: [string, () => Promise<DatabaseApi>][] = [
    ['open', opened],
    ['connect', async () => connect((await servers.serve({})).url)],
  ];
  return ways.map(([name, make]) => [
    name,
    async () => {
      const database = await make();
      databases.push(database);
      return database;
    },
  ]);
}

/** The code of the refusal, or `none`. */
export const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'none',
    (error: unknown) => (error instanceof Refusal ? error.code : String(error)),
  );
