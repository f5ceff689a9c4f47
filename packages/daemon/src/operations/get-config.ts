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

/** The path of a webhook is enough to post to it, so a read-only caller sees only the host. */
function withoutSecretPath(entry: DaemonSchema<'ConfigEntry'>): DaemonSchema<'ConfigEntry'> {
  const { key, value } = entry;
  if (key !== 'notify.webhook_url' || typeof value !== 'string' || value === '') return entry;
  return {
    ...entry,
    value: URL.canParse(value) ? `${new URL(value).origin}/********` : '********',
  };
}
