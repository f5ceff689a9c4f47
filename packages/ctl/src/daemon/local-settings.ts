import { daemonConfig, defaultConfigFile, defaultDataDirectory } from '@millrace/daemon/config';
import { loadConfig, type FlagValue } from '@millrace/kit/config';

/** The settings a daemon would start with here and now. */
export function loadDaemonSettings(
  flags: Readonly<Record<string, FlagValue>>,
  env: Readonly<Record<string, string | undefined>>,
) {
  const defaultFile = defaultConfigFile(env);
  const loaded = loadConfig(daemonConfig, { flags, environment: env, defaultFile });
  return { ...loaded, dataDir: loaded.values.data_dir ?? defaultDataDirectory(env) };
}
