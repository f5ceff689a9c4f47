import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { systemCode } from '@millrace/kit/errors';
import { runningFile } from './places.js';

/** What is recorded: the settings `savings` and `savings_samples`. */
export interface Recording {
  savings: boolean;
  savingsSamples: boolean;
}

/**
 * Tells the command line what the daemon that runs here records, wherever its settings came from:
 * `ctl check` sees neither its flags nor its file. Returns what takes it back.
 */
export function publishRecording(dataDir: string, recording: Recording): () => void {
  const file = runningFile(dataDir);
  const fresh = `${file}.new`;
  const text = `${JSON.stringify(recording)}\n`;
  writeFileSync(fresh, text, { mode: 0o600 });
  renameSync(fresh, file);
  return () => {
    try {
      // Another daemon may have started in the meantime and said what it records.
      if (readFileSync(file, 'utf8') === text) rmSync(file);
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error;
    }
  };
}

/** What the daemon that runs here records; undefined where none has said so. */
export async function runningRecording(dataDir: string): Promise<Recording | undefined> {
  try {
    const value = JSON.parse(await readFile(runningFile(dataDir), 'utf8')) as Partial<Recording>;
    const { savings, savingsSamples } = value ?? {};
    if (typeof savings !== 'boolean' || typeof savingsSamples !== 'boolean') return undefined;
    return { savings, savingsSamples };
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error))) return undefined;
    // Damaged: as if nobody had said anything.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
