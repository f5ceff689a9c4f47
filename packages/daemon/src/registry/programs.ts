import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { systemCode } from '@millrace/kit/errors';

/**
 * Finds a program like a shell does: the first executable file of this name in the directories of
 * `searchPath`. Relative and empty entries are skipped, so that a file in the current directory is
 * not taken for an installed program.
 */
export async function findProgram(
  binary: string,
  searchPath: string | undefined,
): Promise<string | undefined> {
  if (isAbsolute(binary)) return (await isExecutable(binary)) ? binary : undefined;
  if (binary.includes('/')) return undefined;
  for (const directory of (searchPath ?? '').split(delimiter)) {
    if (!isAbsolute(directory)) continue;
    const file = join(directory, binary);
    if (await isExecutable(file)) return file;
  }
  return undefined;
}

// A directory that cannot be read cannot be executed from either.
const notThere = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'ENAMETOOLONG']);

async function isExecutable(file: string): Promise<boolean> {
  try {
    if (!(await stat(file)).isFile()) return false;
    await access(file, constants.X_OK);
    return true;
  } catch (error) {
    if (notThere.has(systemCode(error))) return false;
    throw error;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that every agent inherits. A trailing `*` matches any suffix. */
const common = (
  'PATH HOME SHELL USER LOGNAME TMPDIR TZ LANG LANGUAGE LC_* TERM COLORTERM XDG_* SSH_AUTH_SOCK ' +
  'HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY FTP_PROXY ' +
  'http_proxy https_proxy all_proxy no_proxy ftp_proxy ' +
  'NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR'
).split(' ');

const anyProvider = ['ANTHROPIC_*', 'OPENAI_*', 'GEMINI_*', 'GOOGLE_*', 'OPENROUTER_*'];

/** Additional variables per backend: the API keys and config homes of its CLI. */
const ofBackend: Readonly<Record<string, readonly string[]>> = {
  claude: ['ANTHROPIC_*', 'CLAUDE_CONFIG_DIR', 'CLAUDE_CODE_*'],
  codex: ['OPENAI_*', 'CODEX_*'],
  gemini: ['GEMINI_*', 'GOOGLE_*'],
  agy: ['GEMINI_*', 'GOOGLE_*', 'ANTIGRAVITY_*'],
  'cursor-agent': ['CURSOR_*'],
  opencode: ['OPENCODE_*', ...anyProvider],
  qwen: ['QWEN_*', 'DASHSCOPE_*', 'OPENAI_*'],
  copilot: ['COPILOT_*', 'GH_TOKEN', 'GITHUB_TOKEN', 'GH_HOST'],
  amp: ['AMP_*'],
  droid: ['FACTORY_*'],
  aider: ['AIDER_*', 'DEEPSEEK_*', ...anyProvider],
  goose: ['GOOSE_*', ...anyProvider],
  crush: ['CRUSH_*', ...anyProvider],
  kimi: ['KIMI_*', 'MOONSHOT_*'],
  auggie: ['AUGMENT_*'],
  'kiro-cli': ['KIRO_*'],
};

/** Never inherited: they describe the terminal and directory that started the daemon. */
const never = new Set([
  'TMUX',
  'TMUX_PANE',
  'CLAUDECODE',
  'CLAUDE_CODE_ENTRYPOINT',
  'INIT_CWD',
  'PWD',
  'OLDPWD',
]);

export interface AgentVariablesParts {
  environment: Environment;
  /** Backends of the config; one that is `like` another inherits the same variables. */
  extra: readonly { id: string; like?: string | undefined }[];
  settings: {
    /** Additional names to inherit, or names with values to set. */
    env: readonly string[] | Readonly<Record<string, string>>;
    env_inherit: 'allowlist' | 'all';
  };
}

/** Environments of backends' programs, without MILLRACE_* settings, which may hold a token. */
export function agentVariables(
  parts: AgentVariablesParts,
): (backend: string) => Record<string, string> {
  return (backend) => variablesOf(parts, backend);
}

function variablesOf(
  { environment, extra, settings }: AgentVariablesParts,
  backend: string,
): Record<string, string> {
  const isList = Array.isArray(settings.env);
  const like = extra.find(({ id }) => id === backend)?.like ?? backend;
  const own = Object.hasOwn(ofBackend, like) ? ofBackend[like]! : [];
  const names = [...common, ...own, ...(isList ? (settings.env as readonly string[]) : [])];
  const isAllowed = settings.env_inherit === 'all' ? () => true : matcher(names);
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined || never.has(name)) continue;
    if (name.startsWith('MILLRACE_') || name.startsWith('npm_')) continue;
    if (isAllowed(name)) passed[name] = value;
  }
  return isList ? passed : { ...passed, ...(settings.env as Record<string, string>) };
}

function matcher(names: readonly string[]): (name: string) => boolean {
  const whole = new Set(names.filter((name) => !name.endsWith('*')));
  const beginnings = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1));
  return (name) => whole.has(name) || beginnings.some((beginning) => name.startsWith(beginning));
}

/** A known agent CLI. */
export interface KnownCli {
  /** The backend's id. */
  id: string;
  /** The program's name on the search path, or an absolute path. */
  binary: string;
}

/** The built-in CLIs and those of the config, which may override a built-in program. */
export function knownClis(extra: readonly KnownCli[]): KnownCli[] {
  const known = new Map(Object.keys(oneShots).map((id) => [id, { id, binary: id }]));
  for (const { id, binary } of extra) known.set(id, { id, binary });
  return [...known.values()];
}

/** Non-interactive invocation of an agent CLI. */
export interface OneShot {
  /** `{prompt}` is replaced by the prompt; without it, the prompt goes to stdin. */
  args: readonly string[];
}

export const promptPlace = '{prompt}';

/**
 * The built-in CLIs by id; ids are stable, because preferences are stored by id. The prompt goes to stdin where the program supports it: arguments are visible to every
 * local user and limited in length. No entry lets an agent use tools without approval.
 */
const oneShots: Readonly<Record<string, readonly string[]>> = {
  claude: ['--print', '--output-format', 'text'],
  codex: ['exec', '--skip-git-repo-check', '--sandbox', 'read-only', '--color', 'never', '-'],
  gemini: [],
  agy: ['--print', promptPlace],
  'cursor-agent': ['--print', '--output-format', 'text', promptPlace],
  opencode: ['run'],
  qwen: [],
  copilot: ['--prompt', promptPlace],
  amp: ['--execute'],
  droid: ['exec', promptPlace],
  aider: [
    '--no-git',
    '--no-pretty',
    '--no-stream',
    '--no-check-update',
    '--dry-run',
    '--message',
    promptPlace,
  ],
  goose: ['run', '--no-session', '--quiet', '--instructions', '-'],
  crush: ['run', '--quiet'],
  kimi: ['--quiet', '--prompt', promptPlace],
  auggie: ['--print', '--quiet', promptPlace],
  'kiro-cli': ['chat', '--no-interactive', promptPlace],
};

/** The invocation of a backend; a configured CLI without arguments reads the prompt from stdin. */
export function oneShotOf(
  id: string,
  extra: readonly { id: string; args?: readonly string[] | undefined }[],
): OneShot {
  const own = extra.find((each) => each.id === id)?.args;
  return { args: own ?? (Object.hasOwn(oneShots, id) ? oneShots[id]! : []) };
}

// Linux limits one argument to 128 KiB including its NUL terminator.
const maxArgumentBytes = 131_071;

export type Invocation = { args: string[]; input: string } | { impossible: string };

/** Arguments and stdin of one run. */
export function invocationOf({ args }: OneShot, prompt: string): Invocation {
  if (!args.some((arg) => arg.includes(promptPlace))) return { args: [...args], input: prompt };
  if (prompt.includes('\0')) return { impossible: 'an argument cannot contain NUL' };
  const filled = args.map((arg) => arg.replaceAll(promptPlace, () => prompt));
  if (filled.some((arg) => Buffer.byteLength(arg) > maxArgumentBytes)) {
    return {
      impossible: 'the prompt is too long for an argument, which is how this program takes it',
    };
  }
  return { args: filled, input: '' };
}
