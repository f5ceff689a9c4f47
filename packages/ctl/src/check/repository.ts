import { readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** The repository that contains a directory, or null. A worktree belongs to its main repository. */
export function repositoryOf(directory: string): string | null {
  for (let here = resolve(directory); ; here = dirname(here)) {
    const mark = join(here, '.git');
    const found = statSync(mark, { throwIfNoEntry: false });
    if (found?.isDirectory()) return here;
    if (found?.isFile()) return mainOf(mark) ?? here;
    if (here === dirname(here)) return null;
  }
}

/** The `.git` of a worktree is a file that names `<repository>/.git/worktrees/<name>`. */
function mainOf(mark: string): string | undefined {
  const target = /^gitdir: *(.+?)\s*$/m.exec(readFileSync(mark, 'utf8'))?.[1];
  if (target === undefined) return undefined;
  return /^(.+)\/\.git\/worktrees\/[^/]+$/.exec(resolve(dirname(mark), target))?.[1];
}
