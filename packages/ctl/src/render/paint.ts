import { styleText } from 'node:util';

/** Colours by meaning, so that no command picks its own. */
export type Tone = 'ok' | 'warn' | 'bad' | 'dim' | 'strong';

export type Paint = (tone: Tone, text: string) => string;

const STYLES = {
  ok: 'green',
  warn: 'yellow',
  bad: 'red',
  dim: 'dim',
  strong: 'bold',
} as const satisfies Record<Tone, Parameters<typeof styleText>[0]>;

// Newer Node would check stdout itself and override the decision below.
export const painter: Paint = (tone, text) =>
  styleText(STYLES[tone], text, { validateStream: false });

export const plain: Paint = (_tone, text) => text;

/** NO_COLOR overrides FORCE_COLOR, and both override the stream. */
export function wantsColour(
  env: Readonly<Record<string, string | undefined>>,
  isTTY: boolean,
): boolean {
  if (env['NO_COLOR']) return false;
  const forced = env['FORCE_COLOR'];
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  return isTTY && env['TERM'] !== 'dumb';
}
