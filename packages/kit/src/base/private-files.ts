import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { randomUUID } from 'node:crypto';
import { systemCode } from './errors.js';

const privateFile = 0o600;
const privateDirectory = 0o700;

/**
 * Makes a directory and those above it that are missing, for its owner alone. Node's own way with
 * `recursive` never ends where a directory cannot be made in one that exists, such as /proc.
 */
export function makePrivateDirectory(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) makePrivateDirectory(dirname(path));
  try {
    mkdirSync(path, { mode: privateDirectory });
  } catch (error) {
    // Another process was faster.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

/** Replaces a file atomically; only its owner can read it. */
export function writePrivateFile(file: string, text: string): void {
  makePrivateDirectory(dirname(file));
  const unfinished = `${file}.${randomUUID()}`;
  try {
    const handle = openSync(unfinished, 'wx', privateFile);
    try {
      writeSync(handle, text);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

/** A warning when other users can read a file of secrets; otherwise undefined. */
export function readableByOthers(file: string): string | undefined {
  const mode = modeOf(file);
  if (mode === undefined || (mode & 0o044) === 0) return undefined;
  return `${file} can be read by other users (mode ${mode.toString(8)}). Run: chmod 600 ${file}`;
}

/** Whether other users can enter or list a directory. */
export function isOpenToOthers(directory: string): boolean {
  return ((modeOf(directory) ?? 0) & 0o077) !== 0;
}

/** Sets a directory to mode 700; returns what was done, or why it failed. */
export function tightenDirectory(directory: string): string {
  const was = 'the data directory was open to other users';
  try {
    chmodSync(directory, privateDirectory);
    return `${was}; its mode is now 700`;
  } catch (error) {
    return `${was} and its mode cannot be changed: ${systemCode(error)}`;
  }
}

/** The permission bits; undefined when there is no such path, or the system has none. */
function modeOf(path: string): number | undefined {
  if (process.platform === 'win32') return undefined;
  const found = statSync(path, { throwIfNoEntry: false });
  return found && found.mode & 0o777;
}
