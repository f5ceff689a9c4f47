import type { Outbound } from '@millrace/kit/outbound';
import { localId, type AcpRow, type Detection } from '../core/backend.js';
import { findProgram, type KnownCli } from './programs.js';
import { probeLocal } from './local-model.js';

export interface DetectionParts {
  clis: readonly KnownCli[];
  /** Search path of programs: the value of PATH. */
  searchPath: () => string | undefined;
  outbound: Outbound;
  localUrl: string;
  /** The adapter of an installed CLI for the Agent Client Protocol. */
  findAdapter?: (id: string) => Promise<AcpRow | undefined>;
}

/** Detects installed CLIs and a running local model. */
export async function detectBackends(parts: DetectionParts): Promise<Detection[]> {
  const searchPath = parts.searchPath();
  const [local, ...programs] = await Promise.all([
    probeLocal(parts.outbound, parts.localUrl),
    ...parts.clis.map(({ binary }) => findProgram(binary, searchPath)),
  ]);
  const adapters = await Promise.all(
    parts.clis.map(async ({ id }, index) =>
      programs[index] === undefined ? undefined : parts.findAdapter?.(id),
    ),
  );
  return [
    ...parts.clis.map(({ id }, index) => ({
      id,
      installed: programs[index] !== undefined,
      binaryPath: programs[index] ?? '',
      adapter: adapters[index],
    })),
    { id: localId, installed: local !== undefined, binaryPath: '' },
  ];
}
