import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemCode } from '@millrace/kit/errors';
import { makePrivate, samplesFolder } from './files.js';

export type Sample = DaemonSchema<'SavingsSample'>;

/** Maximum number of samples; the oldest are deleted. */
const maxSamples = 200;
/** A longer sample would not change the measured ratio. */
export const maxSampleLength = 32_768;

/** Stores a sample of raw and shortened text. File names sort by time. */
export async function saveSample(dataDir: string, id: string, sample: Sample): Promise<void> {
  const folder = samplesFolder(dataDir);
  await makePrivate(folder);
  const cut = { ...sample, raw: shortened(sample.raw), kept: shortened(sample.kept) };
  const fresh = join(folder, `${id}.new`);
  await writeFile(fresh, JSON.stringify(cut), { mode: 0o600 });
  await rename(fresh, join(folder, `${id}.json`));
  const names = await sampleNames(folder);
  // Another process may remove the same ones at the same time.
  await Promise.all(names.slice(maxSamples).map((name) => rm(join(folder, name), { force: true })));
}

/** Samples, newest first, without corrupt ones. */
export async function newestSamples(
  dataDir: string,
  { max, since = -Infinity }: { max: number; since?: number },
): Promise<Sample[]> {
  const folder = samplesFolder(dataDir);
  const found: Sample[] = [];
  for (const name of await sampleNames(folder)) {
    if (found.length >= max) break;
    const sample = await readSample(join(folder, name));
    if (sample && Date.parse(sample.ts) >= since) found.push(sample);
  }
  return found;
}

async function sampleNames(folder: string): Promise<string[]> {
  try {
    const names = await readdir(folder);
    return names
      .filter((name) => name.endsWith('.json'))
      .toSorted()
      .toReversed();
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error))) return [];
    throw error;
  }
}

async function readSample(file: string): Promise<Sample | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'));
    return isSample(value) ? value : undefined;
  } catch (error) {
    // Deleted meanwhile by another process, or torn by a crash.
    if (systemCode(error) === 'ENOENT' || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isSample(value: unknown): value is Sample {
  if (typeof value !== 'object' || value === null) return false;
  const { ts, raw, kept: short } = value as Partial<Record<keyof Sample, unknown>>;
  return typeof ts === 'string' && typeof raw === 'string' && typeof short === 'string';
}

function shortened(text: string): string {
  if (text.length <= maxSampleLength) return text;
  const half = maxSampleLength / 2;
  return `${text.slice(0, half)}\n[...]\n${text.slice(-half)}`;
}
