import { readFile } from 'node:fs/promises';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemCode } from '@millrace/kit/errors';
import { calibrationFile } from './files.js';

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
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error))) return heuristicRatio;
    throw error;
  }
  const bytesPerToken = bytesPerTokenIn(text);
  if (isPlausible(bytesPerToken)) return { bytesPerToken, basis: 'CALIBRATED' };
  onBroken(file);
  return heuristicRatio;
}

function bytesPerTokenIn(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return undefined;
    return (value as { bytes_per_token?: unknown }).bytes_per_token;
  } catch {
    return undefined;
  }
}
