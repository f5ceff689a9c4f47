import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Stores a pipeline and starts it, unless it is to wait. */
export function createPipeline(
  { pipelines }: Pick<DaemonContext, 'pipelines'>,
  definition: DaemonSchema<'PipelineDefinition'>,
): Promise<DaemonSchema<'Pipeline'>> {
  return pipelines.create(definition);
}
