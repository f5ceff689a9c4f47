import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { formatTimestamp } from '@millrace/kit/units';
import { calibrationFile, makePrivate } from './files.js';
import { isPlausible } from './ratio.js';
import { newestSamples } from './samples.js';

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
  await writeCalibration(dataDir, calibration);
  return calibration;
}

async function writeCalibration(dataDir: string, calibration: Calibration): Promise<void> {
  const file = calibrationFile(dataDir);
  await makePrivate(dirname(file));
  const fresh = `${file}.${process.pid}.new`;
  try {
    const handle = await open(fresh, 'w', 0o600);
    try {
      await handle.writeFile(`${JSON.stringify(calibration, null, 2)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}
