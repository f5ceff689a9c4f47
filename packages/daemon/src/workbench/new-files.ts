import type { Git } from './git.js';

type Variables = Readonly<Record<string, string>>;

/** More names than this are an error, not a part of them. */
const maxBytes = 64 * 1_048_576;

/**
 * Untracked files that are not ignored, and untracked nested repositories. Names are quoted as git
 * quotes them, and can be given back to it as they are.
 */
export async function newFiles(git: Git, variables: Variables = {}) {
  const names = await listFiles(git, ['--others', '--exclude-standard'], variables);
  const isDirectory = (name: string) => /\/"?$/.test(name);
  return {
    files: names.filter((name) => !isDirectory(name)),
    repositories: names.filter(isDirectory).map((name) => name.replace(/\/("?)$/, '$1')),
  };
}

/** Tracked files that were changed or deleted. */
export function changedFiles(git: Git): Promise<string[]> {
  return listFiles(git, ['--modified', '--deduplicate']);
}

async function listFiles(git: Git, options: string[], variables: Variables = {}) {
  const listed = await git.text(['ls-files', ...options], { variables, maxBytes });
  return listed.split('\n').filter((name) => name !== '');
}

/** Adds nested repositories by their commit; one without a commit is left out, as it has none. */
export async function addRepositories(
  git: Git,
  repositories: readonly string[],
  variables: Variables = {},
): Promise<void> {
  for (const name of repositories) {
    const args = ['update-index', '--add', '--replace', '--stdin'];
    await git.run(args, { variables, input: `${name}\n` });
  }
}
