/** The daemon's contract, from daemon.openapi.yaml. Browser-safe. */
import type { components } from './generated/daemon.js';

export type {
  components as DaemonComponents,
  operations as DaemonOperations,
  paths as DaemonPaths,
} from './generated/daemon.js';
export * from './generated/daemon.codes.js';
export * from './generated/daemon.operations.js';

/** A schema by its name in the document: `DaemonSchema<'Backend'>`. */
export type DaemonSchema<Name extends keyof components['schemas']> = components['schemas'][Name];
