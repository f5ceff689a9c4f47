import type { Clock } from '@millrace/kit/clock';
import {
  failed,
  percentOf,
  recordOf,
  timeOfCount,
  windowOf,
  type Failed,
  type Reading,
  type UsageAdapter,
  type UsageWindow,
} from './adapter.js';
import { AppServers, type AppServerAnswer } from './codex-app-server.js';
import type { Logins } from './provider-call.js';

const windows = [
  { scope: 'primary', label: 'Primary window' },
  { scope: 'secondary', label: 'Secondary window' },
] as const;

export interface CodexUsage extends UsageAdapter {
  /** Ends all running processes. */
  close(): Promise<void>;
}

/** Provider A: two windows that are never merged, read from the CLI's own app-server. */
export function codexUsage(command: string, logins: Logins, clock: Clock): CodexUsage {
  const environment = logins.codexEnvironment ?? logins.environment;
  const servers = new AppServers({ clock, environment });
  return {
    windows,
    async read(row, limits) {
      const isUsual = command === 'codex';
      if (isUsual && !row.installed) return notInstalled;
      const program = isUsual && row.binary_path !== '' ? row.binary_path : command;
      return readingOf(await servers.request(program, 'account/rateLimits/read', limits));
    },
    close: () => servers.close(),
  };
}

const notInstalled = failed('not_installed', 'the command line is not installed', {
  wasRequested: false,
});

function readingOf(answer: AppServerAnswer): Reading {
  switch (answer.kind) {
    case 'result': {
      const found = windowsIn(answer.result);
      return found
        ? { ok: true, windows: found }
        : failed('error', 'the answer of codex has no rate limits');
    }
    case 'refused':
      return refusal(answer.code, answer.message);
    case 'missing':
      return notInstalled;
    case 'unstartable':
      return failed('unavailable', 'codex cannot be started', { wasRequested: false });
    case 'ended':
      return answer.hasSpoken
        ? failed('error', 'codex ended after an answer that makes no sense')
        : failed('unavailable', 'codex ended without an answer');
    case 'aborted':
      return failed('timeout', 'codex did not answer in time');
  }
}

/**
 * Codex reports its own errors by code, and those of its provider as text only. The text is not
 * passed on, because it may name the account.
 */
function refusal(code: number | null, message: string): Failed {
  if (code === -32_601 || /unknown variant|method not found/i.test(message)) {
    return failed('unsupported', 'this version of codex cannot be asked for usage; update it');
  }
  if (/chatgpt authentication required/i.test(message)) {
    const error = 'an API key cannot ask for usage; log in with `codex login`';
    return failed('unsupported', error);
  }
  if (/authentication required|\b40[13]\b|not logged in/i.test(message)) {
    return failed('unauthenticated', 'codex has no valid login; log in with `codex login`');
  }
  const meaning = /\b429\b/.test(message) ? ': too many requests' : '';
  return failed('unavailable', `codex could not ask its provider${meaning}`);
}

function windowsIn(result: unknown): UsageWindow[] | undefined {
  const limits = recordOf(recordOf(result)?.['rateLimits']);
  if (!limits || !windows.some(({ scope }) => 'usedPercent' in (recordOf(limits[scope]) ?? {}))) {
    return undefined;
  }
  return windows.map(({ scope, label }) => {
    const window = recordOf(limits[scope]);
    return windowOf(
      { scope, label: labelOf(window?.['windowDurationMins']) ?? label },
      percentOf(window?.['usedPercent']),
      timeOfCount(window?.['resetsAt'], 1000),
    );
  });
}

/** What the window is to people: its length. */
function labelOf(minutes: unknown): string | undefined {
  if (typeof minutes !== 'number' || !Number.isInteger(minutes) || minutes <= 0) return undefined;
  if (minutes === 10_080) return 'Weekly window';
  if (minutes % 1440 === 0) return `${minutes / 1440}-day window`;
  return minutes % 60 === 0 ? `${minutes / 60}-hour window` : `${minutes}-minute window`;
}
