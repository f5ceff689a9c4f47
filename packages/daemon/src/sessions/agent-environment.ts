type Environment = Readonly<Record<string, string | undefined>>;

/** Of whoever started the daemon, and wrong for what runs in a terminal of our own. */
const notPassed = new Set([
  'TMUX',
  'TMUX_PANE',
  'CLAUDECODE',
  'CLAUDE_CODE_ENTRYPOINT',
  'INIT_CWD',
  'PWD',
  'OLDPWD',
]);

/**
 * What an agent finds in its environment: the daemon's own, but none of the settings in it, which
 * may hold a token; and who it is, so that the command line counts what it does as the agent's.
 */
export function agentEnvironment(
  environment: Environment,
  { id, dataDir, cwd }: { id: string; dataDir: string; cwd: string },
): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined || notPassed.has(name)) continue;
    if (name.startsWith('MILLRACE_') || name.startsWith('npm_')) continue;
    passed[name] = value;
  }
  return { ...passed, PWD: cwd, MILLRACE_AGENT_ID: id, MILLRACE_DATA_DIR: dataDir };
}
