/**
 * Compact command of each CLI. Null: it has none that works when typed, so the guard only raises
 * alerts for its agents.
 */
const commands: Readonly<Record<string, string | null>> = {
  claude: '/compact',
  codex: '/compact',
  gemini: '/compress',
  agy: null,
  'cursor-agent': '/compress',
  opencode: '/compact',
  qwen: '/compress',
  copilot: '/compact',
  // Hands over to a new thread instead.
  amp: null,
  droid: '/compress',
  // Summarizes automatically.
  aider: null,
  goose: '/compact',
  // A slash opens its command palette, which does not accept pasted text.
  crush: null,
  kimi: '/compact',
  auggie: null,
  'kiro-cli': '/compact',
};

/** CLIs from the config default to the most common command. */
export function compactCommand(backend: string): string | null {
  const known = Object.hasOwn(commands, backend) ? commands[backend] : undefined;
  return known === undefined ? '/compact' : known;
}
