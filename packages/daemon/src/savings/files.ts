import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { membersIn, whenThere } from '@millrace/kit/errors';
import { publishText } from '../storage/published-file.js';

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

/** The settings `savings` and `savings_samples`. */
export interface Recording {
  savings: boolean;
  savingsSamples: boolean;
}

/**
 * Publishes what the running daemon records for `ctl check`, which sees neither its flags nor its
 * config file. Returns a function that removes it.
 */
export function publishRecording(dataDir: string, recording: Recording): () => void {
  return publishText(runningFile(dataDir), `${JSON.stringify(recording)}\n`);
}

/** What the running daemon records; undefined when nothing is published. */
export async function runningRecording(dataDir: string): Promise<Recording | undefined> {
  const text = (await whenThere(readFile(runningFile(dataDir), 'utf8'))) ?? '';
  // A corrupt file counts as missing.
  const { savings, savingsSamples } = (membersIn(text) ?? {}) as Partial<Recording>;
  if (typeof savings !== 'boolean' || typeof savingsSamples !== 'boolean') return undefined;
  return { savings, savingsSamples };
}
