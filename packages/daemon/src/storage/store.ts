import { chmodSync } from 'node:fs';
import { open, type CommitTarget, type Database } from '@millrace/engine';
import { dataDirectory } from '@millrace/kit/config';
import type { World } from '@millrace/kit/world';
import type { Log } from '@millrace/kit/log';
import { Registry } from '../registry/backends.js';
import { importDeprecated, type DeprecatedSettings } from '../core/backend.js';

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

/** All records of a collection whose keys are ULIDs, newest first. */
export async function newestFirst<Data extends object>(
  database: Database,
  name: string,
): Promise<Data[]> {
  const found: { key: string; data: Data }[] = [];
  for await (const each of database.collection<Data>(name).stream()) found.push(each);
  return found.toSorted((a, b) => (a.key < b.key ? 1 : -1)).map(({ data }) => data);
}

/** Deletes the oldest records above `max` that have ended, and what other collections have of them. */
export function deleteOldest(
  target: CommitTarget,
  [name, ...others]: readonly [string, ...string[]],
  max: number,
  hasEnded: (status: string) => boolean,
): void {
  const all = target.collection<{ status: string }>(name).all();
  if (all.length <= max) return;
  const old = all.filter(({ data }) => hasEnded(data.status)).map(({ key }) => key);
  for (const key of old.toSorted().slice(0, all.length - max)) {
    for (const each of [name, ...others]) target.collection(each).delete(key);
  }
}

/** Set by the first start, whether or not there was something to import. */
const mark = 'deprecated-config-imported';

/**
 * Imports the tiers of older versions from the config file into the registry, once per data
 * directory.
 */
export async function importDeprecatedOnce(
  registry: Registry,
  deprecated: DeprecatedSettings,
  log: Log,
): Promise<void> {
  const imported = await registry.changeOnce(mark, (before) => {
    const { state, unknown } = importDeprecated(before, deprecated);
    return { state, result: { unknown, changed: state !== before } };
  });
  if (!imported) return;
  const { unknown, changed } = imported.result;
  if (changed) log.info({}, 'imported the tiers of autopilot.brain into the registry');
  for (const id of unknown) {
    log.warn({ backend: id }, `autopilot.brain names the backend "${id}", which is not known`);
  }
}
