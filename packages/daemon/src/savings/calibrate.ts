import { rename, rm, readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatTimestamp } from '@millrace/kit/units';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { jsonIn, membersIn, whenThere } from '@millrace/kit/errors';
import { writePrivateFile } from '@millrace/kit/private-files';
import { calibrationFile, makePrivate, samplesFolder } from './files.js';

/** Content of `calibration.json`. */
export interface Calibration {
  bytes_per_token: number;
  /** How the ratio was measured. */
  samples: number;
  bytes: number;
  tokens: number;
  calibrated_at: string;
}

export interface CalibrationParts {
  dataDir: string;
  now: number;
  /** `--calibrate-max`: maximum number of samples. */
  most: number;
  /** Calls the provider's token counter. Throws on failure. */
  countTokens: (text: string) => Promise<number>;
}

/**
 * Measures the bytes-per-token ratio on the stored samples, newest first. Writes the result only
 * after every count succeeded, so that an error leaves the old ratio in place.
 */
export async function calibrate(parts: CalibrationParts): Promise<Calibration | 'no samples'> {
  const { dataDir, now, most, countTokens } = parts;
  const retained = await newestSamples(dataDir, { max: most });
  const texts = retained.map(({ raw }) => raw).filter((raw) => raw.trim() !== '');
  if (texts.length === 0) return 'no samples';
  let [bytes, tokens] = [0, 0];
  for (const text of texts) {
    const counted = await countTokens(text);
    if (!Number.isSafeInteger(counted) || counted < 1) {
      throw new Error(`the token counter answered ${counted} for a text`);
    }
    bytes += Buffer.byteLength(text);
    tokens += counted;
  }
  const ratio = Math.round((bytes / tokens) * 1e4) / 1e4;
  if (!isPlausible(ratio)) {
    throw new Error(`${tokens} tokens for ${bytes} bytes cannot be right`);
  }
  const calibration = {
    bytes_per_token: ratio,
    samples: texts.length,
    bytes,
    tokens,
    calibrated_at: formatTimestamp(now),
  };
  writePrivateFile(calibrationFile(dataDir), `${JSON.stringify(calibration, null, 2)}\n`);
  return calibration;
}

/** How many bytes make a token, and how sure that is. */
export interface Ratio {
  bytesPerToken: number;
  basis: DaemonSchema<'Basis'>;
}

export const heuristicRatio: Ratio = { bytesPerToken: 4, basis: 'HEURISTIC' };

/** Texts of any language are within these; anything else is a counting error. */
const [minBytes, maxBytes] = [0.5, 50];

export function isPlausible(bytesPerToken: unknown): bytesPerToken is number {
  return (
    typeof bytesPerToken === 'number' && bytesPerToken >= minBytes && bytesPerToken <= maxBytes
  );
}

export function tokensIn(bytes: number, { bytesPerToken }: Ratio): number {
  return Math.ceil(bytes / bytesPerToken);
}

/** The calibrated ratio, or the heuristic without a calibration. */
export async function readRatio(
  dataDir: string,
  onBroken: (file: string) => void = () => {},
): Promise<Ratio> {
  const file = calibrationFile(dataDir);
  const text = await whenThere(readFile(file, 'utf8'));
  if (text === undefined) return heuristicRatio;
  const bytesPerToken = membersIn(text)?.['bytes_per_token'];
  if (isPlausible(bytesPerToken)) return { bytesPerToken, basis: 'CALIBRATED' };
  onBroken(file);
  return heuristicRatio;
}

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
  const names = (await whenThere(readdir(folder))) ?? [];
  return names
    .filter((name) => name.endsWith('.json'))
    .toSorted()
    .toReversed();
}

async function readSample(file: string): Promise<Sample | undefined> {
  // It may be deleted meanwhile by another process, or torn by a crash.
  const value = jsonIn((await whenThere(readFile(file, 'utf8'))) ?? '');
  return isSample(value) ? value : undefined;
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
