import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/** The ledger: one line per saving, appended by every process of this user. */
export function ledgerFile(dataDir: string): string {
  return join(savingsFolder(dataDir), 'ledger.jsonl');
}

/** The calibrated bytes-per-token ratio; absent before a calibration. */
export function calibrationFile(dataDir: string): string {
  return join(savingsFolder(dataDir), 'calibration.json');
}

/** What the running daemon records; absent while none runs. */
export function runningFile(dataDir: string): string {
  return join(dataDir, 'savings-running.json');
}

/** Samples of raw and shortened text, one file each. */
export function samplesFolder(dataDir: string): string {
  return join(savingsFolder(dataDir), 'samples');
}

function savingsFolder(dataDir: string): string {
  return join(dataDir, 'savings');
}

/** Creates a folder with mode 0700: its content reveals what the user works on. */
export async function makePrivate(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
}
