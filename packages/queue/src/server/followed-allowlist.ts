import { parseAllowlist, type Allowlist } from '@millrace/kit/outbound';
import type { Metrics } from '@millrace/kit/metrics';
import { watchFile } from '@millrace/kit/tokens';
import type { World } from '@millrace/kit/world';
import type { QueueSettings } from './config.js';

/** The config file of the server, and how to read the settings again. */
export interface SettingsFile {
  file: string;
  read: () => QueueSettings;
}

export interface FollowedAllowlist extends Allowlist {
  close(): void;
}

/** The allowlist of the settings; calls `onChange` after the config file has changed it. */
export function followAllowlist(
  settings: QueueSettings,
  source: SettingsFile | undefined,
  { clock, log }: World,
  { metrics, onChange }: { metrics: Metrics; onChange: () => void },
): FollowedAllowlist {
  if (!source) return { ...allowlistOf(settings), close: () => undefined };
  let isOpen = false;
  const watched = watchFile({
    file: source.file,
    name: 'allowlist',
    isPrivate: false,
    parse: () => {
      const allowlist = allowlistOf(isOpen ? source.read() : settings);
      // The new list is in place only after this returns.
      if (isOpen) clock.after(0, onChange);
      isOpen = true;
      return allowlist;
    },
    clock,
    log,
    metrics,
  });
  return {
    match: (url) => watched.current.match(url),
    matchTarget: (target) => watched.current.matchTarget(target),
    close: () => watched.close(),
  };
}

function allowlistOf(settings: QueueSettings): Allowlist {
  const { callback_allowlist: list, extra_callback_allowlist: extra } = settings;
  return parseAllowlist([...list, ...extra]);
}
