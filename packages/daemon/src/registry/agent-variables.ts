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

/** Environment of a backend's program, without MILLRACE_* settings, which may hold a token. */
export function agentVariables(
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
