import { styleText } from 'node:util';

/** Colours by what they mean, so that no command picks its own. */
export type Tone = 'ok' | 'warn' | 'bad' | 'dim' | 'strong';

export type Paint = (tone: Tone, text: string) => string;

const STYLES = {
  ok: 'green',
  warn: 'yellow',
  bad: 'red',
  dim: 'dim',
  strong: 'bold',
} as const satisfies Record<Tone, Parameters<typeof styleText>[0]>;

// Newer Node would look at stdout by itself and overrule the decision made below.
export const painter: Paint = (tone, text) =>
  styleText(STYLES[tone], text, { validateStream: false });

export const plain: Paint = (_tone, text) => text;

/** NO_COLOR wins over FORCE_COLOR, and both over what the stream is. */
export function wantsColour(
  env: Readonly<Record<string, string | undefined>>,
  isTTY: boolean,
): boolean {
  if (env['NO_COLOR']) return false;
  const forced = env['FORCE_COLOR'];
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  return isTTY && env['TERM'] !== 'dumb';
}
