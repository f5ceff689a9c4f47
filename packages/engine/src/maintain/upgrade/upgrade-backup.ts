import { constants, existsSync } from 'node:fs';
import { copyFile, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Refusal, UsageError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { humanBytes } from '@millrace/kit/units';
import { makePrivateDirectory } from '@millrace/kit/private-files';
import { currentStore, pointTo, syncDirectory } from '../../storage/file/directory.js';
import { freeBytes, isOutOfRoom } from '../../storage/file/files.js';

/**
 * Copies a database that is about to be upgraded into a directory inside its own, which the version
 * that wrote the data can open. Returns its path. An earlier copy of this name is replaced.
 *
 * Only while the directory is locked and nothing is written.
 */
export async function backUpBeforeUpgrade(
  directory: string,
  name: string,
  log: Log,
): Promise<string> {
  const backup = join(directory, `backup-before-${name}`);
  const unfinished = `${backup}.new`;
  await rm(unfinished, { recursive: true, force: true });
  const files = await filesOf(directory);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  refuseWithoutRoom(directory, bytes, freeBytes(backup));
  try {
    await mkdir(unfinished, { mode: 0o700 });
    for (const { path } of files) await copy(join(directory, path), join(unfinished, path));
    pointTo(unfinished, currentStore(directory));
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    if (isOutOfRoom(error)) refuseWithoutRoom(directory, bytes, 0);
    throw error;
  }
  await rm(backup, { recursive: true, force: true });
  await rename(unfinished, backup);
  syncDirectory(directory);
  log.info({ backup, bytes }, 'data backed up before upgrade');
  return backup;
}

/** Refuses to upgrade data if upgrades are turned off. */
export function refuseUpgrade(path: string, from: number, to: number): never {
  throw new Refusal(
    'UPGRADE_NEEDED',
    `${path} has format ${from}, and this Millrace would upgrade it to format ${to}. ` +
      'Upgrades are turned off. Start without --no-upgrade (upgrade: false) to back the data up ' +
      'and upgrade it, or use the version that wrote it.',
  );
}

/** The store and its write-ahead log. */
async function filesOf(directory: string): Promise<{ path: string; bytes: number }[]> {
  const paths = [currentStore(directory)];
  for (const entry of await readdir(directory)) {
    if (!/^log-\d{6}$/.test(entry)) continue;
    const segments = await readdir(join(directory, entry));
    paths.push(...segments.map((segment) => join(entry, segment)));
  }
  const present = paths.filter((path) => existsSync(join(directory, path)));
  return Promise.all(
    present.map(async (path) => ({ path, bytes: (await stat(join(directory, path))).size })),
  );
}

/** Shares the blocks with the original on file systems that support it. */
async function copy(from: string, to: string): Promise<void> {
  makePrivateDirectory(dirname(to));
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  const file = await open(to, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

function refuseWithoutRoom(directory: string, needed: number, free: number): void {
  if (free >= needed) return;
  throw new UsageError(
    `The upgrade of ${basename(directory)} first copies ${humanBytes(needed)} into ${directory}, ` +
      `and ${humanBytes(free)} are free there. Free some space and start again; nothing has changed.`,
  );
}
