import type { DaemonSchema } from '@millrace/contract/daemon';
import { daemonConfig } from '@millrace/daemon/config';
import type { Source } from '@millrace/kit/config';
import { loadDaemonSettings } from '../daemon/local-settings.js';
import { lineOf, readOnlyTokenFile, tokenFile } from '../base/places.js';

type ConfigView = DaemonSchema<'ConfigView'>;
type ConfigEntry = DaemonSchema<'ConfigEntry'>;

const mask = '********';

/** The settings a daemon would start with here, in the form of its config route. */
export function localConfigView(
  flags: { config?: string; data?: string },
  env: Readonly<Record<string, string | undefined>>,
): ConfigView {
  const loaded = loadDaemonSettings(flags, env);
  const { dataDir, sourceOf } = loaded;
  const files = new Map([
    ['token', tokenFile(dataDir)],
    ['read_only_token', readOnlyTokenFile(dataDir)],
  ]);
  const secrets = new Set(
    daemonConfig.settings.filter(({ notes }) => notes.secret).map(({ key }) => key),
  );
  const entries = loaded.entries.map(({ key, value }): ConfigEntry => {
    const [source, origin] = placeOf(sourceOf(key));
    const secret = secrets.has(key);
    if (!secret) {
      return { key, value: key === 'data_dir' ? dataDir : value, source, origin, secret };
    }
    const file = files.get(key);
    if (value === null && file !== undefined && lineOf(file) !== undefined) {
      return { key, value: mask, source: 'file', origin: file, secret };
    }
    return { key, value: value === null ? null : mask, source, origin, secret };
  });
  return {
    config_file: loaded.file ?? null,
    data_dir: dataDir,
    entries: entries.filter(isOfInterest).sort((a, b) => (a.key < b.key ? -1 : 1)),
    warnings: [...loaded.warnings],
  };
}

/** Removed settings are shown only if they are set. */
function isOfInterest({ key, source }: ConfigEntry): boolean {
  return !key.startsWith('autopilot.') || source !== 'default';
}

function placeOf(source: Source): [source: ConfigEntry['source'], origin: string | null] {
  switch (source.kind) {
    case 'flag':
      return ['flag', `--${source.flag}`];
    case 'environment':
      return ['environment', source.variable];
    case 'file':
      return ['file', source.file];
    case 'default':
      return ['default', null];
  }
}
