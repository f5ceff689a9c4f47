import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Refusal } from '@millrace/kit/errors';
import type { Tools } from '../base/tools.js';

/** Above this file, in the repository and in the published package alike. */
function source(): string {
  for (let above = import.meta.dirname; above !== dirname(above); above = dirname(above)) {
    const folder = join(above, 'packaging');
    if (existsSync(join(folder, 'systemd'))) return folder;
  }
  throw new Refusal('NOT_FOUND', 'The files are not part of this installation. Install it again.');
}

export async function copyTo(
  directory: string,
  _flags: object,
  { terminal }: Tools,
): Promise<void> {
  const { cp, mkdir, readdir } = await import('node:fs/promises');
  await mkdir(directory, { recursive: true });
  if ((await readdir(directory)).length > 0) {
    throw new Refusal('NOT_EMPTY', `${directory} is not empty. Name a new directory.`);
  }
  await cp(source(), directory, { recursive: true });
  const files = (await readdir(directory, { recursive: true, withFileTypes: true })).filter(
    (entry) => entry.isFile(),
  );
  const shown = { directory, files: files.length };
  const text = `Copied ${files.length} files to ${directory}.\n`;
  terminal.show(shown, text);
}
