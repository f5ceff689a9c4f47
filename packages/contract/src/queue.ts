/** The queue's contract, from queue.openapi.yaml. Browser-safe. */
import type { components } from './generated/queue.js';

export type {
  components as QueueComponents,
  operations as QueueOperations,
  paths as QueuePaths,
} from './generated/queue.js';
export * from './generated/queue.codes.js';
export * from './generated/queue.operations.js';

/** A schema by its name in the document: `QueueSchema<'Envelope'>`. */
export type QueueSchema<Name extends keyof components['schemas']> = components['schemas'][Name];
