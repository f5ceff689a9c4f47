import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemClock } from '@millrace/kit/clock';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { daemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Flags, Tools } from '../base/tools.js';
import { auditScreen, savingsScreen, benchmarkScreen } from './savings-screen.js';
import { parseSince } from '../base/since.js';

export type SavingsFlags = DaemonFlags &
  Flags<'since calibrateMax', 'benchmark audit calibrate watch'>;

type SavingsReport = DaemonSchema<'SavingsReport'>;

const defaultCalibrateMax = 50;

export async function showSavings(flags: SavingsFlags, tools: Tools): Promise<void> {
  const most = calibrateMaxOf(flags);
  const query = queryOf(flags);
  if (flags.calibrate) {
    if (flags.watch) throw new UsageError('--calibrate measures once: leave out --watch.');
    const { calibrateHere } = await import('./calibrating.js');
    return calibrateHere({ most, data: flags.data }, tools);
  }
  const api = await daemonApi(flags, tools);
  const report = await api.call('getSavings', { query });
  if (!isSavingsReport(report)) {
    throw new Refusal(
      'UNAVAILABLE',
      `${api.url} returned no savings report. It may be another version of Millrace.`,
    );
  }
  tools.terminal.show(report, () => screenOf(report, flags, tools));
}

function screenOf(report: SavingsReport, flags: SavingsFlags, { terminal }: Tools): string {
  if (flags.audit) return auditScreen(report, terminal.out);
  if (flags.benchmark) return benchmarkScreen(report, terminal.out);
  return savingsScreen(report, terminal.out);
}

function queryOf({ since, audit }: SavingsFlags) {
  const from = since === undefined ? undefined : parseSince(since, systemClock.now());
  return {
    ...(from && { since: from.text }),
    bucket: from?.bucket ?? 'day',
    ...(audit && { samples: '1' as const }),
  };
}

function calibrateMaxOf({ calibrateMax: text }: SavingsFlags): number {
  if (text === undefined) return defaultCalibrateMax;
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  throw new UsageError(`--calibrate-max must be a number from 1 to 9999, not "${text}".`);
}

function isSavingsReport(value: unknown): value is SavingsReport {
  return (
    typeof value === 'object' &&
    value !== null &&
    'axes' in value &&
    'features' in value &&
    Array.isArray(value.features)
  );
}
