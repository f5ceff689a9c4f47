import type { Log } from '@millrace/kit/log';
import { importDeprecated, type DeprecatedSettings } from '../core/deprecated.js';
import type { Registry } from '../registry/backends.js';

/** Set by the first start, whether or not there was something to import. */
const mark = 'deprecated-config-imported';

/**
 * Imports the tiers of older versions from the config file into the registry, once per data
 * directory.
 */
export async function importDeprecatedOnce(
  registry: Registry,
  deprecated: DeprecatedSettings,
  log: Log,
): Promise<void> {
  const imported = await registry.changeOnce(mark, (before) => {
    const { state, unknown } = importDeprecated(before, deprecated);
    return { state, result: { unknown, changed: state !== before } };
  });
  if (!imported) return;
  const { unknown, changed } = imported.result;
  if (changed) log.info({}, 'imported the tiers of autopilot.brain into the registry');
  for (const id of unknown) {
    log.warn({ backend: id }, `autopilot.brain names the backend "${id}", which is not known`);
  }
}
