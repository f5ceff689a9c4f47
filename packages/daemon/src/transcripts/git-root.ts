import { readFile, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';

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
