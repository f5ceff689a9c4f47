import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';

/*
 * Programs that draw on the whole screen write no lines: the output of their sessions is what the
 * terminal shows, and after their end what it showed last.
 */

const fullScreenClis = new Set(['codex', 'opencode']);

export function isFullScreen(cli: string): boolean {
  return fullScreenClis.has(cli);
}

function fileIn(directory: string): string {
  return join(directory, 'screen');
}

export function saveScreen(directory: string, screen: string): void {
  writeFileSync(fileIn(directory), screen, { mode: 0o600 });
}

export interface ScreenView {
  /** The session's own directory. */
  directory: string;
  /** Undefined when there is no terminal any more. */
  screen: string | undefined;
  /** How many bytes the program has written. */
  end: number;
}

/** The last lines of the screen. A reader that follows gets them again when something was drawn. */
export function screenOutput(
  { directory, screen, end }: ScreenView,
  { after, limit }: { after?: number | undefined; limit: number },
): DaemonSchema<'SessionOutput'> {
  if (after !== undefined && after >= end) return { lines: [], next: end };
  const file = fileIn(directory);
  const saved = screen ?? (existsSync(file) ? readFileSync(file, 'utf8') : '');
  const lines = saved.split('\n').map((line) => line.trimEnd());
  while (lines.at(-1) === '') lines.pop();
  while (lines[0] === '') lines.shift();
  return { lines: lines.slice(-limit), next: end };
}
