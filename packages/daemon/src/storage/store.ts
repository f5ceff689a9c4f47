import { chmodSync } from 'node:fs';
import { open, type Database } from '@millrace/engine';
import { dataDirectory } from '@millrace/kit/config';
import type { World } from '@millrace/kit/world';
import { Registry } from '../registry/backends.js';

/** The daemon's database, which no other process opens. */
export interface Store {
  readonly database: Database;
  readonly registry: Registry;
  close(): Promise<void>;
}

export async function openStore(
  directory: string,
  world: World,
  upgrade?: boolean,
): Promise<Store> {
  const home = dataDirectory(directory);
  chmodSync(home, 0o700);
  const { clock, random, log } = world;
  const database = await open(home, { clock, random, log, upgrade });
  return { database, registry: new Registry(database), close: () => database.close() };
}
