import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
  linkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { systemCode, UsageError } from '@millrace/kit/errors';
import { silentLog, type Log } from '@millrace/kit/log';
import {
  isOpenToOthers,
  makePrivateDirectory,
  tightenDirectory,
} from '@millrace/kit/private-files';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Clock, Timer } from '@millrace/kit/clock';

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
    makePrivateDirectory(directory);
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

/**
 * The process that holds a directory, with enough to distinguish a live holder from a killed one.
 */
interface Holder {
  pid: number;
  /** Start time of the process, as the system reports it: pids are reused. */
  started: string;
  host: string;
  token: string;
}

const beatEveryMs = 2_000;
// Only for a holder on another host (a removed container), whose process cannot be checked.
const silentForMs = 15_000;

/** Directories held by this process, so that a second `open` is not mistaken for a stale lock. */
const heldHere = new Set<string>();

/**
 * Only one process may open a database. The lock is a file that names its holder and is touched
 * every two seconds; a killed holder leaves it behind, and the next opener sees that the process
 * has ended and takes over.
 */
export class DirectoryLock {
  readonly #file: string;
  readonly #token = randomUUID();
  #timer: Timer | undefined;

  constructor(
    directory: string,
    private readonly clock: Clock,
  ) {
    this.#file = join(directory, 'LOCK');
    this.#take(directory);
    heldHere.add(this.#file);
    this.#beat();
  }

  release(): void {
    this.#timer?.cancel();
    heldHere.delete(this.#file);
    if (readHolder(this.#file)?.token === this.#token) unlinkSync(this.#file);
  }

  #take(directory: string): void {
    const mine = `${this.#file}.${this.#token}`;
    const holder: Holder = {
      pid: process.pid,
      started: lifeOf(process.pid).started,
      host: hostname(),
      token: this.#token,
    };
    writeFileSync(mine, JSON.stringify(holder), { mode: 0o600 });
    try {
      for (let attempt = 0; attempt < 5; attempt++) {
        if (linked(mine, this.#file)) return;
        const other = readHolder(this.#file);
        if (other === undefined) continue;
        if (this.#isAlive(other, this.#file)) throw inUse(directory, other);
        if (this.#takeOver(directory, mine, other)) return;
      }
      throw inUse(directory, readHolder(this.#file));
    } finally {
      unlinkSync(mine);
    }
  }

  /**
   * Replaces a dead holder. The claim to do so is a file named after that holder, which only one
   * opener can create; the lock file itself always exists meanwhile, so no third process can take
   * it. An opener that was killed while it had the claim is a dead holder too: the claim to its
   * claim is named after it, and so on.
   */
  #takeOver(directory: string, mine: string, dead: Holder): boolean {
    const rights: string[] = [];
    for (let last = dead; ;) {
      const right = `${this.#file}.after.${last.token}`;
      rights.push(right);
      if (linked(mine, right)) break;
      const rival = readHolder(right);
      if (rival === undefined) return false;
      if (this.#isAlive(rival, right)) throw inUse(directory, rival);
      last = rival;
    }
    // Another process may have completed all of this since the dead holder was read.
    const isStill = readHolder(this.#file)?.token === dead.token;
    if (isStill) {
      renameSync(rights.at(-1)!, this.#file);
      rights.pop();
    }
    for (const right of isStill ? rights : rights.slice(-1)) unlinkSync(right);
    return isStill;
  }

  #isAlive(holder: Holder, file: string): boolean {
    if (holder.host !== hostname()) {
      return this.clock.now() - modifiedAt(file) < silentForMs;
    }
    const { started, isOver } = lifeOf(holder.pid);
    if (isOver) return false;
    if (started === '' || holder.started === '') {
      // The system cannot distinguish a process from a later one with the same pid.
      return holder.pid === process.pid ? heldHere.has(this.#file) : exists(holder.pid);
    }
    return started === holder.started;
  }

  #beat(): void {
    this.#timer = this.clock.after(beatEveryMs, () => {
      const now = this.clock.now() / 1_000;
      try {
        utimesSync(this.#file, now, now);
      } catch (error) {
        // The directory may have been removed, or the disk be read-only: no reason to end the
        // process.
        if (systemCode(error) === '') throw error;
      }
      this.#beat();
    });
  }
}

/** Creates `name` as a hard link to the file, unless it exists. */
function linked(file: string, name: string): boolean {
  try {
    linkSync(file, name);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/** The holder that a lock file names; undefined when the file does not exist. */
function readHolder(file: string): Holder | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  const nobody: Holder = { pid: 0, started: 'never', host: hostname(), token: 'nobody' };
  try {
    return { ...nobody, ...(JSON.parse(text) as Holder) };
  } catch (error) {
    // Truncated by a crash of the machine: there is no holder.
    if (error instanceof SyntaxError) return nobody;
    throw error;
  }
}

function modifiedAt(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Any other error means that it exists, but may not be signalled.
    return systemCode(error) !== 'ESRCH';
  }
}

/**
 * Start time of a process in ticks since boot, or "" where the system does not report it. A zombie
 * counts as ended.
 */
function lifeOf(pid: number): { started: string; isOver: boolean } {
  if (!(pid > 0) || !exists(pid)) return { started: '', isOver: true };
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command, in parentheses, may itself contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { started: fields[19] ?? '', isOver: fields[0] === 'Z' || fields[0] === 'X' };
  } catch (error) {
    if (systemCode(error) === '') throw error;
    return { started: '', isOver: false };
  }
}

function inUse(directory: string, holder: Holder | undefined): UsageError {
  const who = holder ? `process ${holder.pid} on ${holder.host}` : 'another process';
  return new UsageError(
    `The database in ${directory} is in use by ${who}. Stop it first, or open another directory.`,
  );
}
