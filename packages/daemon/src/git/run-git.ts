import type { Clock } from '@millrace/kit/clock';
import { runProgram, type ProgramEnd } from '../registry/run-program.js';
import { safeSettings, isolated, type ConfigPair, type IsolationKind } from './isolated.js';

type Environment = Readonly<Record<string, string | undefined>>;

export interface GitRun {
  clock: Clock;
  environment: Environment;
  cwd: string;
  timeoutMs: number;
  signal?: AbortSignal;
  /** Whether the repository may run its hooks and filters: `worktrees.hooks`. */
  isTrusted?: boolean;
  /** Variables for this run, such as GIT_INDEX_FILE. */
  variables?: Environment;
  /** Written to stdin. */
  input?: string;
  /** Which part of a too large output to return; default: the end. */
  keeps?: 'start' | 'end';
  /** Maximum size of the output. */
  maxBytes?: number;
}

/**
 * How each command runs in a repository that is not trusted. `refs`: it handles refs and commits
 * only, and runs in the repository with the settings that run programs overridden. The others would
 * run filters, drivers or transports, and run isolated from the config of the repository. A command
 * that is not listed is not run.
 */
const commands: Readonly<Record<string, 'refs' | 'files' | 'objects' | 'push'>> = {
  '--version': 'refs',
  branch: 'refs',
  'check-ref-format': 'refs',
  'commit-tree': 'refs',
  config: 'refs',
  diff: 'files',
  'diff-index': 'files',
  'diff-tree': 'objects',
  'for-each-ref': 'refs',
  'hash-object': 'refs',
  log: 'objects',
  'ls-files': 'files',
  'merge-base': 'refs',
  'merge-tree': 'objects',
  push: 'push',
  'read-tree': 'files',
  reflog: 'refs',
  remote: 'refs',
  'rev-list': 'refs',
  'rev-parse': 'refs',
  show: 'objects',
  'show-ref': 'refs',
  stripspace: 'refs',
  'symbolic-ref': 'refs',
  'update-index': 'files',
  'update-ref': 'refs',
  var: 'refs',
  worktree: 'refs',
  'write-tree': 'files',
};

/** Options that keep a command from running a program, or git inside a nested repository. */
const diffOptions = ['--no-ext-diff', '--no-textconv', '--ignore-submodules=dirty'];

/**
 * Runs git. All git calls of the daemon go through here, because the config of a repository, and of
 * repositories nested in it, can name programs, which would run with the daemon's rights.
 */
export async function runGit(run: GitRun, args: readonly string[]): Promise<ProgramEnd> {
  // Without a name it would run in the daemon's own directory.
  if (run.cwd === '') throw new Error('git needs the name of a directory');
  const [command = '', ...others] = args;
  const options = command.startsWith('diff') ? diffOptions : [];
  const start = programOf(run, [command, ...options, ...others]);
  if (run.isTrusted) return start(plainEnvironment(run.environment));
  const kind = commands[command];
  if (!kind) throw new Error(`git ${command} is not in the list of commands that are safe`);
  // The worktree of a new branch gets its files by read-tree, without hooks and filters.
  const isCheckout = command === 'worktree' && args[1] === 'add';
  if (isCheckout && !args.includes('--no-checkout')) throw new Error('git worktree add checks out');
  if (kind !== 'refs') return runIsolated(kind, run, start);
  const safe = safeEnvironment(run.environment);
  const isRead = command === 'symbolic-ref' && readsOnly.test(others.join(' '));
  if (isRead || !refChanges.has(command)) return start(safe);
  const listed = await programOf({ ...run, input: '' }, [
    'config',
    '--null',
    '--name-only',
    ...hookNames,
  ])(safe);
  // Code 1: there is none.
  if (listed.kind !== 'exited' || (listed.code !== 0 && listed.code !== 1)) return listed;
  return start(withSettings(safe, withoutHooks(listed.stdout.split('\0'))));
}

/** Commands that run hooks. Newer versions of git take hooks from the config too. */
const refChanges = new Set(['branch', 'symbolic-ref', 'update-ref', 'worktree']);
/** Of `symbolic-ref`: one name, and options of its output. */
const readsOnly = /^(?:--(?:quiet|short) )*[^\s-]\S*$/;
const hookNames = ['--get-regexp', '^hook\\.'];

function withoutHooks(names: readonly string[]): ConfigPair[] {
  const hooks = new Set(names.flatMap((name) => /^hook\..+(?=\.)/s.exec(name)?.[0] ?? []));
  return [...hooks].flatMap((hook): ConfigPair[] => [
    [`${hook}.enabled`, 'false'],
    [`${hook}.command`, 'false'],
  ]);
}

/** Runs gh, which calls git by itself. */
export async function runGh(
  run: GitRun & { file: string },
  args: readonly string[],
): Promise<ProgramEnd> {
  const plain = { NO_COLOR: '1', GH_PROMPT_DISABLED: '1', GH_NO_UPDATE_NOTIFIER: '1' };
  const start = programOf({ ...run, variables: { ...run.variables, ...plain } }, args, run.file);
  return runIsolated('gh', run, start);
}

type Start = (environment: Environment) => Promise<ProgramEnd>;

function programOf(run: GitRun, args: readonly string[], file = 'git'): Start {
  const { clock, cwd, timeoutMs, signal, input, keeps, maxBytes } = run;
  const program = { file, args, clock, cwd, timeoutMs, signal, input, keeps, maxBytes };
  return (environment) =>
    runProgram({ ...program, environment: { ...environment, ...run.variables } });
}

function runIsolated(kind: IsolationKind, run: GitRun, start: Start): Promise<ProgramEnd> {
  const { clock, cwd, timeoutMs, signal } = run;
  const plain = { clock, cwd, timeoutMs, environment: run.environment, ...(signal && { signal }) };
  const safe = safeEnvironment(run.environment);
  return isolated(
    kind,
    run,
    (args) => programOf(plain, args)(safe),
    ({ variables, settings }) => {
      const environment = kind === 'push' ? safeEnvironment(run.environment, ofPush) : safe;
      return start(withSettings({ ...environment, ...variables }, settings));
    },
  );
}

/** An environment in which git commands on refs run no program that a repository names. */
function safeEnvironment(environment: Environment, settings = safeSettings): Environment {
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
    settings,
  );
}

/** A push uses the credential helpers of the user, and reads no config of the repository. */
const ofPush = safeSettings.filter(([name]) => !name.startsWith('credential.'));

/** Disables prompts, and removes variables that point git at another repository. */
function plainEnvironment(environment: Environment): Environment {
  const isOurs = (name: string) => name.startsWith('MILLRACE_') || name.startsWith('GIT_');
  const passed = Object.entries(environment).filter(([name]) => !isOurs(name));
  return withSettings(
    {
      ...Object.fromEntries(passed),
      LC_ALL: 'C',
      GIT_TERMINAL_PROMPT: '0',
      GIT_OPTIONAL_LOCKS: '0',
    },
    // Names of files are ASCII in every output, and can be given back to git.
    [['core.quotePath', 'true']],
  );
}

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
