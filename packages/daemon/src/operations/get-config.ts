import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** The live configuration, with the source of each value. */
export function getConfig(
  { settings }: DaemonContext,
  access: 'full' | 'read_only',
): DaemonSchema<'ConfigView'> {
  const view = settings.view();
  if (access === 'full') return view;
  return { ...view, entries: view.entries.map((entry) => withoutSecretPath(entry)) };
}

/** Who knows the path of a webhook can post to it, so that a read-only caller sees the host only. */
function withoutSecretPath(entry: DaemonSchema<'ConfigEntry'>): DaemonSchema<'ConfigEntry'> {
  const { key, value } = entry;
  if (key !== 'notify.webhook_url' || typeof value !== 'string' || value === '') return entry;
  return {
    ...entry,
    value: URL.canParse(value) ? `${new URL(value).origin}/********` : '********',
  };
}
