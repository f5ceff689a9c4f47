const standard = 200_000;
const large = 1_000_000;

/** Claude marks a model with the large window in its name: `claude-opus-4-8[1m]`. */
export function windowByName(names: readonly (string | null | undefined)[]): number | undefined {
  return names.some((name) => name?.toLowerCase().endsWith('[1m]')) ? large : undefined;
}

/** The first screen of claude names the model: `Opus 4.8 (1M context) · API Usage Billing`. */
const banner = /^[\s│]*[A-Z][a-z]+ \d+(?:\.\d+)?( \(1M context\))?(?: with \w+ effort)? · /m;

/** Transcripts of claude do not contain the size of its context window; its first screen does. */
export function windowOnScreen(cli: string, screen: string): number | undefined {
  if (cli !== 'claude' || !screen.includes('Claude Code')) return undefined;
  const found = banner.exec(screen);
  if (!found) return undefined;
  return found[1] === undefined ? standard : large;
}
