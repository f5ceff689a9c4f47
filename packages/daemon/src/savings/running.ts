import { readFile } from 'node:fs/promises';
import { systemCode } from '@millrace/kit/errors';
import { publishText } from '../storage/published-file.js';
import { runningFile } from './files.js';

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
  return publishText(runningFile(dataDir), `${JSON.stringify(recording)}\n`);
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
