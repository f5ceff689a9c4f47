import type { Database } from '@millrace/engine';
import { ContextGuard, type GuardParts } from './guard.js';
import { GuardStore } from './guard-store.js';

export interface GuardSettings {
  guard: boolean;
  warn: number;
  critical: number;
  warn_pct: number;
  critical_pct: number;
  warn_alert: boolean;
  auto_compact: boolean;
  force_compact: boolean;
  compact_resume_prompt: string;
}

export interface GuardOptions extends Pick<
  GuardParts,
  'clock' | 'log' | 'sessions' | 'alerts' | 'recorder'
> {
  settings: GuardSettings;
  database: Database;
}

export interface OpenGuard {
  close(): Promise<void>;
}

/** Starts guarding contexts; with `tokens.guard` off it does nothing. */
export async function openGuard({
  settings,
  database,
  ...parts
}: GuardOptions): Promise<OpenGuard> {
  if (!settings.guard) return { close: async () => {} };
  const guard = new ContextGuard({
    ...parts,
    store: await GuardStore.open(database),
    rules: {
      warn: settings.warn,
      critical: settings.critical,
      warnPct: settings.warn_pct,
      criticalPct: settings.critical_pct,
      alerts: settings.warn_alert,
      autoCompact: settings.auto_compact,
    },
    forceCompact: settings.force_compact,
    resumePrompt: settings.compact_resume_prompt,
  });
  await guard.start();
  return { close: () => guard.close() };
}
