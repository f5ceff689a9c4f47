import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal } from '@millrace/kit/errors';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { usageScreen } from './usage-screen.js';

type UsageDocument = DaemonSchema<'UsageDocument'>;

/** Failures to reach a provider; everything else is a valid result. */
const troubles = new Set(['unavailable', 'timeout', 'error']);

export async function showUsage(
  { refresh = false, ...flags }: DaemonFlags & { refresh?: boolean },
  tools: Tools,
): Promise<void> {
  const api = await daemonApi(flags, tools);
  const document = await api.call('getUsage', { query: refresh ? { refresh } : {} });
  if (!isUsageDocument(document)) {
    throw new Refusal(
      'UNAVAILABLE',
      `${api.url} returned no usage document of version 1. It may be another version of ` +
        'Millrace.',
    );
  }
  const { out, json } = tools.terminal;
  out.write(json ? `${JSON.stringify(document, null, 2)}\n` : usageScreen(document, out));
  if (document.backends.some(({ status }) => troubles.has(status))) tools.exitWith(2);
}

function isUsageDocument(value: unknown): value is UsageDocument {
  return (
    typeof value === 'object' &&
    value !== null &&
    'schema_version' in value &&
    value.schema_version === 1 &&
    'backends' in value &&
    Array.isArray(value.backends)
  );
}
