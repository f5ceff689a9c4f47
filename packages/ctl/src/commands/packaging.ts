import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Refusal } from '@millrace/kit/errors';
import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';

/** Above this file, in the repository and in the published package alike. */
function source(): string {
  for (let above = import.meta.dirname; above !== dirname(above); above = dirname(above)) {
    const folder = join(above, 'packaging');
    if (existsSync(join(folder, 'systemd'))) return folder;
  }
  throw new Refusal('NOT_FOUND', 'The files are not part of this installation. Install it again.');
}

export function build(packaging: CtlCommand, tools: Tools): void {
  packaging.description(
    'Copy the files for operating Millrace: systemd units, Prometheus alerts, a Grafana dashboard, ' +
      'compose files, an image and Kubernetes manifests.',
  );
  packaging.example('ctl packaging copy ./packaging', 'all of them');
  packaging
    .command('copy')
    .summary('Copy systemd units, alerts, Grafana, compose and Kubernetes files')
    .description('Copy the files into a directory, which is created if needed and must be empty.')
    .argument('<dir>', 'directory to create')
    .example('ctl packaging copy ./packaging', 'all of them')
    .action((directory: string) => copyTo(directory, tools));
}

async function copyTo(directory: string, { terminal }: Tools): Promise<void> {
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
