import { resolve } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import type { LoadedConfig } from '@millrace/kit/config';
import { daemonConfig, type DaemonSettings } from './config.js';

type Entry = DaemonSchema<'ConfigEntry'>;

export interface ConfigViewParts {
  loaded: LoadedConfig<DaemonSettings>;
  /** The directory in use, whether configured or the default. */
  dataDir: string;
  /** The file that holds the secret of this key, unless a setting overrides it. */
  secretFile: (key: string) => string | undefined;
}

const mask = '********';
const secretKeys = new Set(
  daemonConfig.settings.filter(({ notes }) => notes.secret).map(({ key }) => key),
);

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

function entryOf(parts: ConfigViewParts, key: string, shown: unknown): Entry {
  const { loaded, dataDir, secretFile } = parts;
  const secret = secretKeys.has(key);
  const [source, origin] = placeOf(loaded, key);
  if (secret) {
    const file = shown === null ? secretFile(key) : undefined;
    if (file !== undefined) return { key, value: mask, source: 'file', origin: file, secret };
    return { key, value: shown === null ? null : mask, source, origin, secret };
  }
  return { key, value: key === 'data_dir' ? dataDir : shown, source, origin, secret };
}

function placeOf(
  loaded: LoadedConfig<DaemonSettings>,
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
