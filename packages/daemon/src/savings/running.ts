import { readFile } from 'node:fs/promises';
import { systemCode } from '@millrace/kit/errors';
import { publishText } from '../storage/published-file.js';
import { runningFile } from './files.js';

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
  try {
    const value = JSON.parse(await readFile(runningFile(dataDir), 'utf8')) as Partial<Recording>;
    const { savings, savingsSamples } = value ?? {};
    if (typeof savings !== 'boolean' || typeof savingsSamples !== 'boolean') return undefined;
    return { savings, savingsSamples };
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error))) return undefined;
    // A corrupt file counts as missing.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
