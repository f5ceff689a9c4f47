import type { Clock } from '@millrace/kit/clock';
import { runGit } from '../git/run-git.js';

export interface GitParts {
  clock: Clock;
  environment: Readonly<Record<string, string | undefined>>;
  /** `worktrees.hooks`: whether hooks and filters of repositories run. */
  runsHooks: boolean;
}

export interface GitEnd {
  isOk: boolean;
  /** Without the final line break. */
  stdout: string;
  /** The error, from git or the daemon. */
  trouble: string;
}

const timeoutMs = 120_000;
/** For the names of all files. */
const maxBytes = 64 * 1_048_576;

/** Runs git in a directory. It never prompts; failures are returned, not thrown. */
export async function git(
  { clock, environment, runsHooks: isTrusted }: GitParts,
  cwd: string,
  ...args: string[]
): Promise<GitEnd> {
  const end = await runGit({ clock, environment, cwd, timeoutMs, isTrusted, maxBytes }, args);
  if (end.kind === 'exited') {
    const stdout = end.stdout.replace(/\n$/, '');
    const said = end.stderr.trim().split('\n').at(-1) ?? '';
    return { isOk: end.code === 0, stdout, trouble: said.replace(/^(?:fatal|error): /, '') };
  }
  const trouble = end.kind === 'not_started' ? 'git is not installed' : `git: ${end.kind}`;
  return { isOk: false, stdout: '', trouble };
}
