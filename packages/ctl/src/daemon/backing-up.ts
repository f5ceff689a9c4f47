import { restoreService, targetOf } from '../db/restoring.js';
import { readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { Refusal } from '@millrace/kit/errors';
import { makePrivateDirectory } from '@millrace/kit/private-files';
import type { Tools } from '../base/tools.js';
import { readBase, saveBackup, showBackup, type Base } from '../db/service-backup.js';
import { daemonApi, type DaemonFlags } from './api.js';
import { locate } from './locate.js';

/** Writes a full backup into a new directory, and what happened since into one that has some. */
export async function backUpDaemon(
  directory: string,
  flags: DaemonFlags & { full?: boolean },
  tools: Tools,
): Promise<void> {
  // A wrong address or token is reported by a call that knows how.
  await (await daemonApi(flags, tools)).call('listBackends');
  const { url, token } = await locate(flags, tools.terminal.env);
  makePrivateDirectory(directory);
  const { baseBackupName, logBackupName, newestBackup } = await import('@millrace/db');
  const last = newestBackup(directory);
  const base = last === undefined ? undefined : await readBase(last);
  const source = { url: `${url}/api/v1/backup`, token };
  const unnamed = join(directory, 'unnamed.backup');
  const save = (since: Base) => saveBackup(source, unnamed, since, tools);
  const made = await save(flags.full ? undefined : base).catch((error: unknown) => {
    // The log does not reach back to the last backup.
    if (base && error instanceof Refusal && error.code === 'INVALID_REQUEST')
      return save(undefined);
    throw error;
  });
  const { seq, sinceSeq } = made.header;
  const name = sinceSeq === 0 ? baseBackupName(seq) : logBackupName(sinceSeq + 1, seq);
  const file = join(directory, name);
  await rename(unnamed, file);
  showBackup(file, made, tools);
}

/** Restores the backups of a directory into a new data directory. */
export async function restoreDaemon(
  directory: string,
  flags: { data: string; to?: string },
  tools: Tools,
): Promise<void> {
  const names = await readdir(directory).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new Refusal('NOT_FOUND', `There is no directory ${directory}.`, { cause: error });
  });
  const hasBase = names.some((name) => name.startsWith('base-'));
  const earlier = hasBase ? undefined : await earlierBackup(directory, names, targetOf(flags.to));
  if (!hasBase && earlier === undefined) {
    throw new Refusal('NOT_FOUND', `${directory} has no backup. Take one with: ctl daemon backup`);
  }
  const parts = {
    store: join(flags.data, 'daemon'),
    name: 'the daemon',
    command: 'ctl daemon serve --data-dir',
  };
  // A full backup is restored as a whole.
  const from = earlier === undefined ? directory : join(directory, earlier);
  const to = earlier === undefined ? flags.to : undefined;
  await restoreService([from], { data: flags.data, to }, parts, tools);
}

/** Full backups that had other names before there were increments: the last one that is early enough. */
async function earlierBackup(
  directory: string,
  names: readonly string[],
  to: number | Date | undefined,
): Promise<string | undefined> {
  const { checkBackup } = await import('@millrace/db');
  const full = names.filter((name) => /^daemon-\d+\.backup$/.test(name)).toSorted();
  for (const name of full.toReversed()) {
    const { seq, createdAt } = (await checkBackup(join(directory, name))).header;
    if (to === undefined || (typeof to === 'number' ? seq <= to : createdAt <= to)) return name;
  }
  return undefined;
}
