import { readdir, realpath, stat, readFile } from 'node:fs/promises';
import { basename, join, dirname, isAbsolute, resolve } from 'node:path';
import { systemCode } from '@millrace/kit/errors';
import type { Places, TranscriptReader } from './reader.js';

/** Metadata of a file. */
export interface FileFacts {
  path: string;
  /** Names the file itself, whatever it is called. */
  inode: string;
  size: number;
  modifiedMs: number;
}

export interface FoundFile extends FileFacts {
  reader: TranscriptReader;
}

/** Absent or unreadable files are skipped without an error. */
const nothingThere = new Set(['ENOENT', 'ENOTDIR', 'ELOOP']);

/**
 * Every transcript there is, in the order of their paths, which is that of their making where the
 * names begin with a time. Unreadable files are reported to `onTrouble` and skipped.
 */
export async function* findFiles(
  readers: readonly TranscriptReader[],
  places: Places,
  onTrouble: (path: string, error: unknown) => void,
): AsyncGenerator<FoundFile> {
  for (const reader of readers) {
    const seen = new Set<string>();
    for (const root of reader.roots(places)) {
      const directory = await orNothing(() => realpath(root), root, onTrouble);
      if (directory === undefined || seen.has(directory)) continue;
      seen.add(directory);
      const isTranscript = (path: string) => reader.isTranscript(basename(path), path);
      const files = filesBelow(directory, onTrouble, reader.depth);
      for await (const paths of inGroups(files, isTranscript)) {
        const all = paths.map((path) => orNothing(() => factsOf(path), path, onTrouble));
        for (const facts of await Promise.all(all)) if (facts) yield { ...facts, reader };
      }
    }
  }
}

/** Number of files inspected in parallel: one after the other, thousands take seconds. */
const groupSize = 64;

async function* inGroups(
  paths: AsyncIterable<string>,
  isWanted: (path: string) => boolean,
): AsyncGenerator<string[]> {
  let group: string[] = [];
  for await (const path of paths) {
    if (!isWanted(path) || group.push(path) < groupSize) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

async function factsOf(path: string): Promise<FileFacts | undefined> {
  const stats = await stat(path);
  if (!stats.isFile()) return undefined;
  const { dev, ino, size, mtimeMs } = stats;
  return { path, inode: `${dev}:${ino}`, size, modifiedMs: mtimeMs };
}

/** Links to directories are not followed: they could lead in a circle. */
async function* filesBelow(
  directory: string,
  onTrouble: (path: string, error: unknown) => void,
  depth = Infinity,
): AsyncGenerator<string> {
  const entries = await orNothing(
    () => readdir(directory, { withFileTypes: true }),
    directory,
    onTrouble,
  );
  for (const entry of (entries ?? []).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) {
      if (depth > 0) yield* filesBelow(path, onTrouble, depth - 1);
    } else if (entry.isFile() || entry.isSymbolicLink()) yield path;
  }
}

async function orNothing<Result>(
  read: () => Promise<Result>,
  path: string,
  onTrouble: (path: string, error: unknown) => void,
): Promise<Result | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!nothingThere.has(systemCode(error))) onTrouble(path, error);
    return undefined;
  }
}

const maxCached = 10_000;

/**
 * Finds the repository of a directory, by searching `.git` upwards. A directory without a
 * repository, or one that no longer exists, is its own root. A worktree belongs to its main
 * repository.
 */
export class GitRoots {
  readonly #known = new Map<string, string>();

  async rootOf(directory: string): Promise<string> {
    const known = this.#known.get(directory);
    if (known !== undefined) return known;
    const root = isAbsolute(directory) ? await findRoot(resolve(directory)) : undefined;
    if (this.#known.size >= maxCached) this.#known.clear();
    this.#known.set(directory, root ?? directory);
    return root ?? directory;
  }
}

async function findRoot(directory: string): Promise<string | undefined> {
  for (let here = directory; ; here = dirname(here)) {
    const mark = join(here, '.git');
    const kind = await kindOf(mark);
    if (kind === 'directory') return here;
    if (kind === 'file') return (await mainOf(mark)) ?? here;
    if (here === dirname(here)) return undefined;
  }
}

/** The `.git` of a worktree is a file that refers to `<repository>/.git/worktrees/<name>`. */
async function mainOf(mark: string): Promise<string | undefined> {
  const text = await readFile(mark, 'utf8').catch(() => '');
  const target = /^gitdir: *(.+?)\s*$/m.exec(text)?.[1];
  if (target === undefined) return undefined;
  return /^(.+)\/\.git\/worktrees\/[^/]+$/.exec(resolve(dirname(mark), target))?.[1];
}

async function kindOf(path: string): Promise<'file' | 'directory' | undefined> {
  try {
    return (await stat(path)).isDirectory() ? 'directory' : 'file';
  } catch {
    // Missing or unreadable.
    return undefined;
  }
}
