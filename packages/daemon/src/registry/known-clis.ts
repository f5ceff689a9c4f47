/** A command line that the daemon knows. */
export interface KnownCli {
  /** The backend's id. */
  id: string;
  /** The program's name on the search path, or an absolute path. */
  binary: string;
}

/** Ids are stable: preferences are kept by them. */
const builtIn = [
  'claude',
  'codex',
  'gemini',
  'agy',
  'cursor-agent',
  'opencode',
  'qwen',
  'copilot',
  'amp',
  'droid',
  'aider',
  'goose',
  'crush',
  'kimi',
  'auggie',
  'kiro-cli',
];

/** The built-in command lines and those of the config, which may also name another program. */
export function knownClis(extra: readonly KnownCli[]): KnownCli[] {
  const known = new Map(builtIn.map((id) => [id, { id, binary: id }]));
  for (const { id, binary } of extra) known.set(id, { id, binary });
  return [...known.values()];
}
