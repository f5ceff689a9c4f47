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
  /** The command reads or writes files or merges, so filters and merge drivers are disabled. */
  handlesFiles?: boolean;
  /** Variables for this run, such as GIT_INDEX_FILE. */
  variables?: Environment;
  /** Written to stdin. */
  input?: string;
  /** Which part of a too large output to return; default: the end. */
  keeps?: 'start' | 'end';
}

/** Commands that read or write files of the working tree, and so would run filters. */
const fileCommands = new Set(['worktree', 'update-index', 'diff-index']);

/**
 * Runs git. All git calls of the daemon go through here, because a repository's config can name
 * commands, which would run with the daemon's rights.
 */
export async function runGit(run: GitRun, args: readonly string[]): Promise<ProgramEnd> {
  const { clock, cwd, timeoutMs, isTrusted = false, variables = {}, input = '', keeps } = run;
  const signal = run.signal ?? new AbortController().signal;
  const limits = { cwd, timeoutMs, signal, clock };
  const start = (environment: Environment) =>
    runProgram({
      ...limits,
      file: 'git',
      args,
      input,
      environment: { ...environment, ...variables },
      ...(keeps && { keeps }),
    });
  if (isTrusted) return start(plainEnvironment(run.environment));
  const safe = safeGitEnvironment(run.environment);
  if (!run.handlesFiles && !fileCommands.has(args[0] ?? '')) return start(safe);
  const names = ['config', '--null', '--name-only', '--get-regexp', '^(filter|merge)\\.'];
  const list = { ...limits, file: 'git', args: names, input: '', environment: safe };
  const listed = await runProgram(list);
  // Code 1: there is none.
  if (listed.kind !== 'exited' || (listed.code !== 0 && listed.code !== 1)) return listed;
  return start(withSettings(safe, withoutCommands(listed.stdout.split('\0'))));
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

/** What git does by itself where no merge driver is configured. */
const ownMerge = 'git merge-file --marker-size=%L %A %O %B';

/**
 * An empty command disables a filter, and a filter that is not required may be missing. A merge
 * driver is replaced, because an empty one would take our side without a conflict.
 */
function withoutCommands(keys: readonly string[]): ConfigPair[] {
  const sections = new Set(
    keys
      .filter((key) => /^(?:filter|merge)\..+\./s.test(key))
      .map((key) => key.slice(0, key.lastIndexOf('.'))),
  );
  return [...sections].flatMap((section): ConfigPair[] =>
    section.startsWith('merge.')
      ? [[`${section}.driver`, ownMerge]]
      : [
          [`${section}.clean`, ''],
          [`${section}.smudge`, ''],
          [`${section}.process`, ''],
          [`${section}.required`, 'false'],
        ],
  );
}
