import type { RemoteDatabase } from './client/database.js';
import type { ConnectOptions } from './client/session.js';

export * from '@millrace/engine';
export type * from './client/api.js';

/**
 * Like `connect` of `@millrace/db/client`, which is loaded on first use, so that programs with
 * in-process databases never load gRPC.
 */
export async function connect(
  url: string | readonly string[],
  options?: ConnectOptions,
): Promise<RemoteDatabase> {
  const client = await import('./client/index.js');
  return client.connect(url, options);
}
