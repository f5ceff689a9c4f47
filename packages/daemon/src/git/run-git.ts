import type { Clock } from '@millrace/kit/clock';
import { runProgram, type ProgramEnd } from '../think/program.js';

type Environment = Readonly<Record<string, string | undefined>>;

export interface GitRun {
  clock: Clock;
  environment: Environment;
  cwd: string;
  timeoutMs: number;
  signal?: AbortSignal;
  /** Whether the repository may run its hooks and filters: `worktrees.hooks`. */
  isTrusted?: boolean;
}

/** Commands that read or write files of the working tree, and so would run filters. */
const fileCommands = new Set(['worktree', 'update-index', 'diff-index']);

/**
 * Runs git. All git calls of the daemon go through here, because a repository's config can name
 * commands, which would run with the daemon's rights.
 */
export async function runGit(run: GitRun, args: readonly string[]): Promise<ProgramEnd> {
  const { clock, cwd, timeoutMs, isTrusted = false } = run;
  const signal = run.signal ?? new AbortController().signal;
  const start = (words: readonly string[], environment: Environment) =>
    runProgram({ file: 'git', args: words, input: '', cwd, environment, timeoutMs, signal, clock });
  if (isTrusted) return start(args, plainEnvironment(run.environment));
  const safe = safeGitEnvironment(run.environment);
  if (!fileCommands.has(args[0] ?? '')) return start(args, safe);
  const listed = await start(
    ['config', '--null', '--name-only', '--get-regexp', '^filter\\.'],
    safe,
  );
  // Code 1: there is none.
  if (listed.kind !== 'exited' || (listed.code !== 0 && listed.code !== 1)) return listed;
  return start(args, withSettings(safe, withoutFilters(listed.stdout.split('\0'))));
}

/**
 * An environment in which git runs no command that a repository names; also for programs that call
 * git. Settings in the environment override those of every config file.
 */
export function safeGitEnvironment(environment: Environment): Environment {
  return withSettings(
    {
      ...plainEnvironment(environment),
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_ATTR_NOSYSTEM: '1',
      // The daemon never fetches, and a partial clone must not fetch on demand.
      GIT_ALLOW_PROTOCOL: 'none',
      GIT_NO_LAZY_FETCH: '1',
      GIT_PAGER: 'cat',
      GIT_EDITOR: 'false',
      GIT_SSH_COMMAND: 'false',
      GIT_ASKPASS: 'false',
    },
    [
      ['core.fsmonitor', 'false'],
      ['core.hooksPath', '/dev/null'],
      ['protocol.ext.allow', 'never'],
      ['credential.helper', ''],
      ['log.showSignature', 'false'],
      ['submodule.recurse', 'false'],
    ],
  );
}

/** Disables prompts, and removes variables that point git at another repository. */
function plainEnvironment(environment: Environment): Environment {
  const isOurs = (name: string) => name.startsWith('MILLRACE_') || name.startsWith('GIT_');
  const passed = Object.entries(environment).filter(([name]) => !isOurs(name));
  return {
    ...Object.fromEntries(passed),
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
  };
}

type ConfigPair = readonly [name: string, value: string];

/** In the environment instead of `-c`, which cannot pass a name that contains `=`. */
function withSettings(environment: Environment, settings: readonly ConfigPair[]): Environment {
  const before = Number(environment['GIT_CONFIG_COUNT'] ?? 0);
  const pairs = settings.flatMap(([name, value], at): [string, string][] => [
    [`GIT_CONFIG_KEY_${before + at}`, name],
    [`GIT_CONFIG_VALUE_${before + at}`, value],
  ]);
  const count = String(before + settings.length);
  return { ...environment, ...Object.fromEntries(pairs), GIT_CONFIG_COUNT: count };
}

/** An empty command disables a filter, and a filter that is not required may be missing. */
function withoutFilters(keys: readonly string[]): ConfigPair[] {
  const filters = new Set(
    keys
      .filter((key) => /^filter\..+\./s.test(key))
      .map((key) => key.slice(0, key.lastIndexOf('.'))),
  );
  return [...filters].flatMap((filter): ConfigPair[] => [
    [`${filter}.clean`, ''],
    [`${filter}.smudge`, ''],
    [`${filter}.process`, ''],
    [`${filter}.required`, 'false'],
  ]);
}
