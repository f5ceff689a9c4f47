import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf, systemCode } from '@millrace/kit/errors';
import { programName } from '../../base/command-name.js';
import type { Terminal } from '../../base/terminal.js';

const maxLines = 1000;

/** Lines typed in earlier shells, newest first, as readline expects. */
export async function readHistory(file: string): Promise<string[]> {
  try {
    const text = await readFile(file, 'utf8');
    return text
      .split('\n')
      .filter((line) => line !== '')
      .toReversed();
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Saves the lines, readable only by the owner, because they may contain private data. */
export async function saveHistory(
  file: string,
  lines: readonly string[],
  { err }: Terminal,
): Promise<void> {
  const text = lines
    .slice(0, maxLines)
    .toReversed()
    .map((line) => `${line}\n`)
    .join('');
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(`${file}.new`, text, { mode: 0o600 });
    await rename(`${file}.new`, file);
  } catch (error) {
    // Not worth failing for: the shell has done its work.
    err.write(`${programName()}: failed to save the history: ${messageOf(error)}\n`);
  }
}
