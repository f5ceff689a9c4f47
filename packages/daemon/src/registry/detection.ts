import type { Outbound } from '@millrace/kit/outbound';
import { localId, type Detection } from '../core/backend.js';
import type { KnownCli } from './known-clis.js';
import { probeLocal } from './local-model.js';
import { findProgram } from './search-path.js';

export interface DetectionParts {
  clis: readonly KnownCli[];
  /** Where programs are looked for: the value of PATH. */
  searchPath: () => string | undefined;
  outbound: Outbound;
  localUrl: string;
}

/** Looks at the machine: which programs are there, and does a local model answer? */
export async function detectBackends(parts: DetectionParts): Promise<Detection[]> {
  const searchPath = parts.searchPath();
  const [local, ...programs] = await Promise.all([
    probeLocal(parts.outbound, parts.localUrl),
    ...parts.clis.map(({ binary }) => findProgram(binary, searchPath)),
  ]);
  return [
    ...parts.clis.map(({ id }, index) => ({
      id,
      installed: programs[index] !== undefined,
      binaryPath: programs[index] ?? '',
    })),
    { id: localId, installed: local !== undefined, binaryPath: '' },
  ];
}
