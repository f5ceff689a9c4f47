import type { Clock } from '@millrace/kit/clock';
import type { Outbound } from '@millrace/kit/outbound';
import type { UsageAdapter } from './adapter.js';
import { claudeUsage } from './claude.js';
import { codexUsage } from './codex.js';
import { cursorUsage } from './cursor.js';
import { geminiUsage } from './gemini.js';
import type { Logins } from './login.js';

/** The settings `providers.*`. URLs are complete. */
export interface ProviderSettings {
  readonly codex: { readonly command: string };
  readonly cursor: { readonly url: string };
  /** For `gemini` and `agy` alike. */
  readonly gemini: { readonly url: string };
  readonly claude: { readonly url: string };
}

export interface Providers {
  /** Adapters by backend id. */
  adapterFor(id: string): UsageAdapter | undefined;
  close(): Promise<void>;
}

export function openProviders(
  settings: ProviderSettings,
  logins: Logins,
  { clock, outbound }: { clock: Clock; outbound: Outbound },
): Providers {
  const tools = { outbound, now: () => clock.now() };
  const codex = codexUsage(settings.codex.command, logins, clock);
  const adapters = new Map<string, UsageAdapter>([
    ['agy', geminiUsage('agy', settings.gemini.url, logins, tools)],
    ['claude', claudeUsage(settings.claude.url, logins, tools)],
    ['codex', codex],
    ['cursor-agent', cursorUsage(settings.cursor.url, logins, tools)],
    ['gemini', geminiUsage('gemini', settings.gemini.url, logins, tools)],
  ]);
  return { adapterFor: (id) => adapters.get(id), close: () => codex.close() };
}
