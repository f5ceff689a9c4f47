import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { daemonConfig } from '@millrace/daemon/config';
import { editYaml } from '@millrace/kit/config';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { suggestion } from '@millrace/kit/nearest';
import { writePrivateFile } from '@millrace/kit/private-files';
import { asTyped, programName } from '../base/command-name.js';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import { configFile } from '../base/places.js';
import { confirmed } from '../base/confirming.js';
import { printable } from '../render/text.js';
import type { Tools } from '../base/tools.js';
import { localConfigView } from './config-view.js';

type ConfigView = DaemonSchema<'ConfigView'>;

export interface ChangeFlags extends DaemonFlags {
  config?: string;
}

/** Writes one setting into the config file; a running daemon writes and applies it, if it can. */
export async function setSetting(
  key: string,
  value: string,
  flags: ChangeFlags,
  tools: Tools,
): Promise<void> {
  checkKey(key);
  const live = await liveView(flags, tools);
  if (live && isApplied(key, flags, live)) return applySetting(key, value, live, flags, tools);
  const file = fileOf(flags, live, tools);
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
  // A file that is broken already is reported by its line.
  const old = viewOfText(before, file, flags, tools);
  const text = editYaml(before, [{ path: key.split('.'), value: valueOf(value) }]);
  const now = save(file, text, flags, tools);
  report({ key, file, old, now, live: readerOf(file, live, tools) }, tools);
}

/** Whether the daemon can change the setting while it runs, in the file that is meant. */
function isApplied(key: string, { config }: ChangeFlags, live: ConfigView): boolean {
  const isItsFile =
    config === undefined || (live.config_file !== null && resolve(config) === live.config_file);
  return isItsFile && live.entries.some((entry) => entry.key === key && entry.editable === true);
}

/** The running daemon if it reads this file when it starts; another file does not concern it. */
function readerOf(file: string, live: ConfigView | undefined, { terminal }: Tools) {
  const read = live?.config_file ?? configFile(terminal.env);
  return resolve(file) === resolve(read) ? live : undefined;
}

async function applySetting(
  key: string,
  value: string,
  live: ConfigView,
  { config: _file, ...flags }: ChangeFlags,
  tools: Tools,
): Promise<void> {
  const { terminal } = tools;
  const { err } = terminal;
  const now = await (
    await daemonApi(flags, tools)
  )
    .call('updateConfig', { body: { values: { [key]: valueOf(value) } } })
    .catch((error: unknown) => {
      if (!(error instanceof Refusal) || error.code !== 'INVALID_REQUEST') throw error;
      throw new UsageError(error.message);
    });
  const warnings = now.warnings.filter((warning) => !live.warnings.includes(warning));
  for (const warning of warnings) {
    err.write(`${err.paint('warn', 'warning:')} ${printable(warning)}\n`);
  }
  const file = now.config_file;
  const applied = warnings.length === 0 ? 'The running daemon applied it.\n' : '';
  terminal.show(
    { file, key, restart: [], overridden: [], applied: [key] },
    `Set ${key} in ${printable(file ?? '')}.\n${applied}`,
  );
}

/** Opens the config file in an editor and stores it only if it is valid. */
export async function editSettings(flags: ChangeFlags, tools: Tools): Promise<void> {
  const { terminal } = tools;
  if (!terminal.in.isScreen || !terminal.out.isScreen) {
    throw new UsageError('ctl config edit needs a terminal. For scripts use `ctl config set`.');
  }
  const live = await liveView(flags, tools);
  const file = fileOf(flags, live, tools);
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const draft = join(dirname(file), `.${basename(file)}.edit-${process.pid}.yaml`);
  mkdirSync(dirname(file), { recursive: true });
  writePrivateFile(draft, before);
  let now: ConfigView;
  try {
    for (;;) {
      await openEditor(draft, tools);
      const text = readFileSync(draft, 'utf8');
      if (text === before) {
        terminal.out.write('Nothing was changed.\n');
        return;
      }
      try {
        now = save(file, text, flags, tools);
        break;
      } catch (error) {
        if (!(error instanceof UsageError)) throw error;
        terminal.err.write(
          `${terminal.err.paint('bad', `${programName()}:`)} ${printable(error.message)}\n`,
        );
        if (await confirmed('Edit it again? [y/N] ', terminal)) continue;
        throw new Refusal('CANCELLED', `${file} was not changed.`);
      }
    }
  } finally {
    rmSync(draft, { force: true });
  }
  const old = oldView(before, file, flags, tools);
  const applied = await applyFile(file, live, flags, tools);
  const isApplied = applied !== undefined;
  report(
    { key: undefined, file, old, now, live: applied ?? readerOf(file, live, tools), isApplied },
    tools,
  );
}

/** Lets the running daemon apply its edited file; undefined if it did not. */
async function applyFile(
  file: string,
  live: ConfigView | undefined,
  { config: _file, ...flags }: ChangeFlags,
  tools: Tools,
): Promise<ConfigView | undefined> {
  if (!live || live.config_file === null || resolve(file) !== live.config_file) return undefined;
  const { err } = tools.terminal;
  try {
    return await (await daemonApi(flags, tools)).call('updateConfig', { body: {} });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const why = `The running daemon did not apply it: ${printable(error.detail)}`;
    err.write(`${err.paint('warn', 'warning:')} ${why}\n`);
    return undefined;
  }
}

/** Undefined if the file was broken before. */
function oldView(text: string, file: string, flags: ChangeFlags, tools: Tools) {
  try {
    return viewOfText(text, file, flags, tools);
  } catch (error) {
    if (error instanceof UsageError) return undefined;
    throw error;
  }
}

function checkKey(key: string): void {
  const keys = daemonConfig.settings.map((setting) => setting.key);
  if (keys.includes(key)) return;
  const meant = suggestion(key, keys) || '. List them all with `ctl config`.';
  throw new UsageError(`there is no setting "${key}"${meant}`);
}

/** `150k` is a text, `true` a switch and `[a, b]` a list, as in the file. */
function valueOf(text: string): unknown {
  try {
    return parse(text) as unknown;
  } catch {
    return text;
  }
}

/** The file of the running daemon, or the one that a daemon would read. */
function fileOf({ config }: ChangeFlags, live: ConfigView | undefined, { terminal }: Tools) {
  return config ?? live?.config_file ?? configFile(terminal.env);
}

async function liveView({ config: _file, ...flags }: ChangeFlags, tools: Tools) {
  try {
    return await (await daemonApi(flags, tools)).call('getConfig');
  } catch (error) {
    if (error instanceof Refusal && error.code === 'UNAVAILABLE') return undefined;
    throw error;
  }
}

function save(file: string, text: string, flags: ChangeFlags, tools: Tools): ConfigView {
  const view = viewOfText(text, file, flags, tools);
  // It may hold secrets.
  writePrivateFile(file, text);
  return view;
}

/** Loads the text as a daemon would, and names the real file in complaints. */
function viewOfText(
  text: string,
  file: string,
  { data }: ChangeFlags,
  { terminal }: Tools,
): ConfigView {
  const trial = join(dirname(file), `.${basename(file)}.check-${process.pid}.yaml`);
  mkdirSync(dirname(file), { recursive: true });
  writePrivateFile(trial, text);
  try {
    return localConfigView({ config: trial, ...(data && { data }) }, terminal.env);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(error.message.replaceAll(trial, file));
  } finally {
    rmSync(trial, { force: true });
  }
}

interface Change {
  readonly key: string | undefined;
  readonly file: string;
  readonly old: ConfigView | undefined;
  readonly now: ConfigView;
  readonly live: ConfigView | undefined;
  /** Whether the running daemon has read the file since. */
  readonly isApplied?: boolean;
}

/** What was stored, and what the running daemon reads only after a restart, or never. */
function report({ key, file, old, now, live, isApplied }: Change, { terminal }: Tools): void {
  const entryIn = (view: ConfigView | undefined, name: string) =>
    view?.entries.find((entry) => entry.key === name);
  const valueIn = (view: ConfigView | undefined, name: string) =>
    JSON.stringify(entryIn(view, name)?.value);
  const changed = now.entries
    .map((entry) => entry.key)
    .filter((name) => name === key || valueIn(old, name) !== valueIn(now, name));
  // A flag or variable of the daemon wins over its file, also after a restart.
  const winner = (name: string) => {
    const { source, origin } = entryIn(live, name) ?? {};
    return source === 'flag' || source === 'environment' ? origin : undefined;
  };
  const overridden = changed.filter((name) => winner(name));
  const restart = changed.filter(
    (name) => live && !winner(name) && valueIn(live, name) !== valueIn(now, name),
  );
  const applied = isApplied
    ? changed.filter((name) => !restart.includes(name) && !overridden.includes(name))
    : [];
  const lines = [
    `${key === undefined ? 'Saved' : `Set ${key} in`} ${printable(file)}.\n`,
    applied.length > 0 ? `The running daemon applied ${applied.join(', ')}.\n` : '',
    restart.length > 0
      ? asTyped(`The running daemon reads ${restart.join(', ')} after: ctl restart daemon\n`)
      : '',
    ...overridden.map(
      (name) => `${name} of the running daemon comes from ${winner(name)}, which wins.\n`,
    ),
  ];
  const result = { file, key: key ?? null, restart, overridden, applied };
  terminal.show(result, lines.join(''));
}

async function openEditor(file: string, { terminal, lifecycle }: Tools): Promise<void> {
  const { spawn } = await import('node:child_process');
  const editor = terminal.env['VISUAL'] || terminal.env['EDITOR'] || 'vi';
  const code = await lifecycle.handOver(
    () =>
      new Promise<number>((resolve, reject) => {
        const child = spawn(`${editor} "$MILLRACE_EDITED_FILE"`, {
          shell: true,
          stdio: 'inherit',
          env: { ...terminal.env, MILLRACE_EDITED_FILE: file },
        });
        child.on('error', reject);
        child.on('exit', (status) => resolve(status ?? 1));
      }),
  );
  if (code !== 0)
    throw new Refusal('CANCELLED', `${editor} ended with ${code}. Nothing was changed.`);
}
