/** A known agent CLI. */
export interface KnownCli {
  /** The backend's id. */
  id: string;
  /** The program's name on the search path, or an absolute path. */
  binary: string;
}

/** Ids are stable, because preferences are stored by id. */
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

/** The built-in CLIs and those of the config, which may override a built-in program. */
export function knownClis(extra: readonly KnownCli[]): KnownCli[] {
  const known = new Map(builtIn.map((id) => [id, { id, binary: id }]));
  for (const { id, binary } of extra) known.set(id, { id, binary });
  return [...known.values()];
}
