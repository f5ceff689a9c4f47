import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { Refusal, UsageError } from '@millrace/kit/errors';
import type { Flags, Tools } from '../base/tools.js';
import { lineOf } from '../base/places.js';
import { serviceFile, type Manager, type ServiceFile } from './service-file.js';

export type InstallFlags = Flags<'listen data config', 'print force'> & { for?: Manager };

/** Writes or prints the service file; the user starts the service. */
export async function installService(flags: InstallFlags, tools: Tools): Promise<void> {
  const { env } = tools.terminal;
  const service = { command: commandOf(flags), searchPath: env['PATH'] || '/usr/bin:/bin' };
  const file = serviceFile(flags.for ?? managerHere(), service, env);
  const { path, text, commands } = file;
  if (flags.print) {
    tools.terminal.show({ path, text, commands }, text);
    return;
  }
  const outcome = await writeServiceFile(file, flags.force ?? false);
  const said = outcome === 'written' ? `Wrote ${path}.` : `${path} is up to date.`;
  tools.terminal.show(
    { path, outcome, commands },
    () =>
      `${said} Start the daemon now and with every login:\n\n` +
      `${commands.map((line) => `  ${line}\n`).join('')}\n`,
  );
}

/** Writes the file unless it is there; a different one is replaced only if forced. */
export async function writeServiceFile(
  { path, text }: ServiceFile,
  force: boolean,
): Promise<'written' | 'unchanged'> {
  const before = lineOf(path);
  if (before === text.trim()) return 'unchanged';
  if (before !== undefined && !force) {
    throw new Refusal(
      'ALREADY_EXISTS',
      `${path} exists and is different. See the new one with --print, or overwrite it with ` +
        '--force.',
    );
  }
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  return 'written';
}

/** Absolute paths, because the service starts in another directory. */
function commandOf({ listen, data, config }: InstallFlags): string[] {
  const script = process.argv[1];
  if (script === undefined) throw new Error('ctl does not know its own path');
  return [
    process.execPath,
    resolve(script),
    'daemon',
    'serve',
    ...(config === undefined ? [] : ['--config', resolve(config)]),
    ...(data === undefined ? [] : ['--data', resolve(data)]),
    ...(listen === undefined ? [] : ['--listen', listen]),
  ];
}

export function managerHere(): Manager {
  if (process.platform === 'darwin') return 'launchd';
  if (process.platform === 'linux') return 'systemd';
  throw new UsageError('Name the service manager: --for systemd or --for launchd.');
}
