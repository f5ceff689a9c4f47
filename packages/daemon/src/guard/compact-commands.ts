/**
 * What each command line is told so that it compacts its context. Null: it has no such command, or
 * none that is known to work when typed, so its agents are alerted about and left alone.
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
  // It hands over to a new thread instead.
  amp: null,
  droid: '/compress',
  // It summarizes by itself.
  aider: null,
  goose: '/compact',
  // A slash opens its palette, which takes no pasted text.
  crush: null,
  kimi: '/compact',
  auggie: null,
  'kiro-cli': '/compact',
};

/** Command lines that the config adds are taken to know what most know. */
export function compactCommand(backend: string): string | null {
  const known = Object.hasOwn(commands, backend) ? commands[backend] : undefined;
  return known === undefined ? '/compact' : known;
}
