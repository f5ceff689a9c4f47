import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemClock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { daemonApi, otherVersion, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
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
  const report = await readSavings(api, query);
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

/** Refuses what another program or version answers. */
export async function readSavings(
  api: DaemonApi,
  query: Partial<ReturnType<typeof queryOf>> = {},
): Promise<SavingsReport> {
  const report = await api.call('getSavings', { query });
  if (isSavingsReport(report)) return report;
  throw otherVersion(api, 'savings report');
}

function isSavingsReport(value: unknown): boolean {
  const { axes, features } = (value ?? {}) as Partial<SavingsReport>;
  return Boolean(axes?.context && axes.offload) && Array.isArray(features);
}
