import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { systemCode, UsageError } from '@millrace/kit/errors';
import { silentLog, type Log } from '@millrace/kit/log';
import { isOpenToOthers, tightenDirectory } from '@millrace/kit/private-files';

/**
 * The files of a database:
 *
 *   LOCK               the process that has it open
 *   CURRENT            the name of the current store
 *   store-000001.mdb   a store; compaction writes the next one and then points CURRENT to it
 *   log-000001/        the write-ahead log of the store that names it
 *
 * So a crash at any moment leaves exactly one current store, and leftovers can be recognised.
 */
const currentFile = 'CURRENT';
const storePattern = /^store-(\d{6})\.mdb$/;
const logPattern = /^log-\d{6}$/;

/** Creates the directory for its owner alone, or removes other users' access to an existing one. */
export function makeDirectory(directory: string, log: Log = silentLog): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (!statSync(directory).isDirectory()) {
      throw new UsageError(`${directory} is not a directory; a database needs one of its own.`);
    }
    const probe = join(directory, `.probe-${process.pid}`);
    closeSync(openSync(probe, 'w', 0o600));
    rmSync(probe);
    keepPrivate(directory, log);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`Cannot write in ${directory}: ${reason(error)}.`, { cause: error });
  }
}

/** A directory with other content, such as a project, keeps its permissions. */
function keepPrivate(directory: string, log: Log): void {
  if (!isOpenToOthers(directory)) return;
  if (isEmptyDirectory(directory) || existsSync(join(directory, currentFile))) {
    log.warn({ directory }, tightenDirectory(directory));
  } else {
    log.warn({ directory }, 'other users can enter the data directory; chmod 700 keeps them out');
  }
}

/** The name of the current store; a new name when the directory has none. */
export function currentStore(directory: string): string {
  const pointer = join(directory, currentFile);
  if (!existsSync(pointer)) {
    const stores = storeFiles(directory);
    if (stores.length > 0) {
      throw noCurrent(directory, stores[0]!);
    }
    return storeName(1);
  }
  const name = readFileSync(pointer, 'utf8').trim();
  if (!storePattern.test(name)) {
    throw new UsageError(`${pointer} does not name a store: "${name.slice(0, 40)}".`);
  }
  return name;
}

/**
 * The store to open. `isNew` when there is none, or when an `open` was killed while creating it:
 * that store must be empty.
 */
export function storeToOpen(directory: string): { name: string; isNew: boolean } {
  if (!existsSync(join(directory, currentFile))) {
    const others = storeFiles(directory).filter((name) => name !== storeName(1));
    if (others.length === 0) return { name: storeName(1), isNew: true };
  }
  const name = currentStore(directory);
  if (!existsSync(join(directory, name))) {
    throw new UsageError(
      `${join(directory, currentFile)} names the store ${name}, which is not there. ` +
        'Put the directory back as it was, or restore a backup into a new one.',
    );
  }
  return { name, isNew: false };
}

export function nextStore(name: string): string {
  return storeName(Number(storePattern.exec(name)?.[1] ?? 0) + 1);
}

/** Makes `name` the current store, durably: after this returns, it survives a crash. */
export function pointTo(directory: string, name: string): void {
  const fresh = join(directory, `${currentFile}.new`);
  const file = openSync(fresh, 'w', 0o600);
  try {
    writeSync(file, `${name}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(fresh, join(directory, currentFile));
  syncDirectory(directory);
}

/** Removes what an unfinished compaction or a replaced store left behind. */
export function removeOtherStores(directory: string, current: string, log: string): void {
  for (const name of storeFiles(directory)) {
    if (name !== current) removeStore(directory, name);
  }
  for (const name of readdirSync(directory)) {
    if (logPattern.test(name) && name !== log) {
      rmSync(join(directory, name), { recursive: true, force: true });
    }
  }
}

export function removeStore(directory: string, name: string): void {
  for (const file of [name, `${name}-lock`]) rmSync(join(directory, file), { force: true });
}

export function isEmptyDirectory(directory: string): boolean {
  return !existsSync(directory) || readdirSync(directory).length === 0;
}

export function syncDirectory(directory: string): void {
  const handle = openSync(directory, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function storeFiles(directory: string): string[] {
  return readdirSync(directory).filter((name) => storePattern.test(name));
}

export function storeName(number: number): string {
  return `store-${String(number).padStart(6, '0')}.mdb`;
}

export function noCurrent(directory: string, store: string): UsageError {
  return new UsageError(
    `${directory} has a store (${store}) but no CURRENT file that names it, as after a ` +
      'restore that was cut short. Put the directory back as it was, or restore a backup ' +
      'into a new one.',
  );
}

function reason(error: unknown): string {
  const code = systemCode(error);
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied for this user';
  if (code === 'EROFS') return 'the file system is read-only';
  if (code === 'ENOSPC') return 'the disk is full';
  if (code === 'ENOTDIR' || code === 'EEXIST') return 'a file has this name';
  return code || (error instanceof Error ? error.message : String(error));
}
