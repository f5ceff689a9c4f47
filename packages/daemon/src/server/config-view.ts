import { resolve } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { describeSetting, type LoadedConfig } from '@millrace/kit/config';
import { daemonConfig, type DaemonSettings } from './config.js';

type Entry = DaemonSchema<'ConfigEntry'>;

export interface ConfigViewParts {
  loaded: Pick<LoadedConfig<DaemonSettings>, 'file' | 'entries' | 'sourceOf' | 'warnings'>;
  /** The directory in use, whether configured or the default. */
  dataDir: string;
  /** The file that holds the secret of this key, unless a setting overrides it. */
  secretFile: (key: string) => string | undefined;
  /** Whether the config file has another value than this one, which is in force. */
  isPending: (key: string, value: unknown) => boolean;
  /** Whether it can change while the daemon runs. */
  isEditable: (key: string) => boolean;
}

const mask = '********';
const settings = new Map(daemonConfig.settings.map((setting) => [setting.key, setting]));

/** Every setting with its live value and where that came from. Secrets are masked. */
export function configView(parts: ConfigViewParts): DaemonSchema<'ConfigView'> {
  const { loaded, dataDir } = parts;
  const entries = loaded.entries
    .map(({ key, value }) => entryOf(parts, key, value))
    // Hide deprecated settings that are not used.
    .filter(({ key, source }) => !key.startsWith('autopilot.') || source !== 'default')
    .toSorted((a, b) => (a.key < b.key ? -1 : 1));
  return {
    config_file: loaded.file === undefined ? null : resolve(loaded.file),
    data_dir: dataDir,
    entries,
    warnings: [...loaded.warnings],
  };
}

function entryOf(parts: ConfigViewParts, key: string, value: unknown): Entry {
  const { isPending, isEditable } = parts;
  const setting = settings.get(key)!;
  const { choices, default: standard, ...described } = describeSetting(setting);
  return {
    key,
    ...shownValue(parts, key, value),
    ...described,
    ...(choices && { choices: [...choices] }),
    default: standard,
    editable: isEditable(key),
    needs_restart: setting.notes.live !== true,
    pending: isPending(key, value),
  };
}

function shownValue(
  { loaded, dataDir, secretFile }: ConfigViewParts,
  key: string,
  shown: unknown,
): Pick<Entry, 'value' | 'source' | 'origin' | 'secret'> {
  const secret = settings.get(key)!.notes.secret === true;
  const [source, origin] = placeOf(loaded, key);
  if (secret) {
    const file = shown === null ? secretFile(key) : undefined;
    if (file !== undefined) return { value: mask, source: 'file', origin: file, secret };
    return { value: shown === null ? null : mask, source, origin, secret };
  }
  return { value: key === 'data_dir' ? dataDir : shown, source, origin, secret };
}

function placeOf(
  loaded: ConfigViewParts['loaded'],
  key: string,
): [source: Entry['source'], origin: string | null] {
  const source = loaded.sourceOf(key);
  switch (source.kind) {
    case 'flag':
      return ['flag', `--${source.flag}`];
    case 'environment':
      return ['environment', source.variable];
    case 'file':
      return ['file', resolve(source.file)];
    case 'default':
      return ['default', null];
  }
}
