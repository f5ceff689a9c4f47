import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

export function getPipeline(
  { pipelines }: Pick<DaemonContext, 'pipelines'>,
  id: string,
): Promise<DaemonSchema<'Pipeline'>> {
  return pipelines.get(id);
}
