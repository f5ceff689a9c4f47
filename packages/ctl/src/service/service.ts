import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { messageOf, Refusal, systemCode } from '@millrace/kit/errors';
import { asTyped } from '../base/command-name.js';
import { dataDirectory } from '../base/data-directory.js';
import { queueTokensFile } from '../base/places.js';
import { managerHere, writeServiceFile } from '../daemon/install.js';
import { serviceFile, type Manager, type ServiceFile } from '../daemon/service-file.js';
import type { Flags, Tools } from '../base/tools.js';

type ServiceName = 'up' | 'db' | 'queue' | 'daemon';

type ServiceFlags = Flags<'data', 'print force start dryRun'> & { for?: Manager };

/** Writes the service file and starts the service. */
export async function install(
  part: ServiceName | undefined,
  flags: ServiceFlags,
  tools: Tools,
): Promise<void> {
  const { manager, file } = serviceOf(part, flags, tools);
  const { path, text, commands } = file;
  if (flags.print) {
    tools.terminal.show({ path, text, commands }, text);
    return;
  }
  const isStarted = flags.start !== false;
  const starting = isStarted ? startCommands(manager, file) : [];
  if (flags.dryRun) {
    const runs = starting.map((words) => words.join(' '));
    const lines = runs.map((line) => `  ${line}\n`).join('');
    const plan = `Would write ${path}:\n\n${text}\n${runs.length > 0 ? `Would run:\n\n${lines}` : ''}`;
    tools.terminal.show({ path, text, commands: runs }, plan);
    return;
  }
  const wasThere = existsSync(path);
  const outcome = await writeServiceFile(file, flags.force ?? false);
  try {
    for (const words of starting) await runManager(words, tools);
  } catch (error) {
    // A service that cannot be started is not left half installed.
    if (!wasThere) await rm(path, { force: true });
    throw error;
  }
  const wrote = outcome === 'written' ? `Wrote ${path}.\n` : `${path} is up to date.\n`;
  const next = isStarted
    ? asTyped(`Started ${file.id}. Check it with \`ctl service status ${part ?? 'up'}\`.\n`)
    : `Start it with:\n\n${commands.map((line) => `  ${line}\n`).join('')}`;
  tools.terminal.show({ path, outcome, started: isStarted, commands }, wrote + next);
}

/** Stops the service and removes its file. */
export async function uninstall(
  part: ServiceName | undefined,
  flags: ServiceFlags,
  tools: Tools,
): Promise<void> {
  const { manager, file } = serviceOf(part, flags, tools);
  const isInstalled = existsSync(file.path);
  if (isInstalled) {
    for (const words of stopCommands(manager, file)) await runManager(words, tools);
    await rm(file.path, { force: true });
    if (manager === 'systemd') await runManager(['systemctl', '--user', 'daemon-reload'], tools);
  }
  const text = isInstalled ? `Removed ${file.path}.\n` : `${file.path} is not installed.\n`;
  tools.terminal.showLine({ path: file.path, removed: isInstalled }, text);
}

/** Shows whether the service is installed and running. */
export async function showService(
  part: ServiceName | undefined,
  flags: ServiceFlags,
  tools: Tools,
): Promise<void> {
  const { manager, file } = serviceOf(part, flags, tools);
  const installed = existsSync(file.path);
  const running = installed && (await isRunning(manager, file, tools));
  if (!running) tools.exitWith(1);
  const state = running ? 'running' : 'not running';
  const advice = `Install it with \`ctl service install ${part ?? 'up'}\`.`;
  tools.terminal.showLine(
    { service: file.id, path: file.path, installed, running },
    `${file.id}: ${installed ? state : `not installed. ${advice}`}\n`,
  );
}

function serviceOf(part: ServiceName = 'up', flags: ServiceFlags, { terminal }: Tools) {
  const manager = flags.for ?? managerHere();
  const script = process.argv[1];
  if (script === undefined) throw new Error('ctl does not know its own path');
  const command = [process.execPath, resolve(script), ...wordsOf(part, flags, terminal.env)];
  const searchPath = terminal.env['PATH'] || '/usr/bin:/bin';
  return { manager, file: serviceFile(manager, { command, searchPath, part }, terminal.env) };
}

/** Absolute paths, because the service starts in another directory. */
function wordsOf(part: ServiceName, { data }: ServiceFlags, env: Tools['terminal']['env']) {
  const dataDir = dataDirectory(data, env);
  if (part === 'up') return ['up', '--data', dataDir];
  if (part === 'db') return ['db', 'serve', '--data', join(dataDir, 'db')];
  const words = [part, 'serve', '--data', dataDir];
  return part === 'daemon' ? words : [...words, '--tokens-file', queueTokensFile(dataDir)];
}

function startCommands(manager: Manager, { id, path }: ServiceFile): string[][] {
  if (manager === 'launchd') return [['launchctl', 'bootstrap', domain(), path]];
  const systemctl = ['systemctl', '--user'];
  return [
    [...systemctl, 'daemon-reload'],
    [...systemctl, 'enable', '--now', id],
  ];
}

function stopCommands(manager: Manager, { id }: ServiceFile): string[][] {
  if (manager === 'launchd') return [['launchctl', 'bootout', `${domain()}/${id}`]];
  return [['systemctl', '--user', 'disable', '--now', id]];
}

async function isRunning(manager: Manager, { id }: ServiceFile, tools: Tools): Promise<boolean> {
  const words =
    manager === 'launchd'
      ? ['launchctl', 'print', `${domain()}/${id}`]
      : ['systemctl', '--user', 'is-active', id];
  const { code, output } = await outcomeOf(words, tools);
  return code === 0 && (manager === 'systemd' || output.includes('state = running'));
}

function domain(): string {
  return `gui/${process.getuid?.() ?? 0}`;
}

async function runManager(words: readonly string[], tools: Tools): Promise<void> {
  const { code, output } = await outcomeOf(words, tools);
  if (code === 0) return;
  throw new Refusal(
    'SERVICE_MANAGER_FAILED',
    `\`${words.join(' ')}\` failed with exit code ${code}: ${output.trim() || 'no output'}`,
  );
}

function outcomeOf(
  [program = '', ...args]: readonly string[],
  { terminal, lifecycle }: Tools,
): Promise<{ code: number; output: string }> {
  const options = { env: { ...terminal.env }, signal: lifecycle.interrupted };
  return new Promise((resolveOutcome, reject) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      if (systemCode(error) === 'ENOENT') {
        const detail = `${program} is not installed. See the file with --print, or use --no-start.`;
        reject(new Refusal('SERVICE_MANAGER_FAILED', detail, { cause: error }));
        return;
      }
      if (error && typeof error.code !== 'number') {
        reject(new Refusal('SERVICE_MANAGER_FAILED', messageOf(error), { cause: error }));
        return;
      }
      resolveOutcome({ code: Number(error?.code ?? 0), output: stdout + stderr });
    });
  });
}
