import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/** One line for every saving, by every process of this user. Only ever appended to. */
export function ledgerFile(dataDir: string): string {
  return join(savingsFolder(dataDir), 'ledger.jsonl');
}

/** The measured ratio of bytes to tokens; absent until somebody calibrates. */
export function calibrationFile(dataDir: string): string {
  return join(savingsFolder(dataDir), 'calibration.json');
}

/** What the daemon that runs here records; absent while none runs. */
export function runningFile(dataDir: string): string {
  return join(dataDir, 'savings-running.json');
}

/** Retained pairs of raw and kept text, a file each. */
export function samplesFolder(dataDir: string): string {
  return join(savingsFolder(dataDir), 'samples');
}

function savingsFolder(dataDir: string): string {
  return join(dataDir, 'savings');
}

/** Whatever is kept here tells what somebody works on, so it is for its owner alone. */
export async function makePrivate(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
}
