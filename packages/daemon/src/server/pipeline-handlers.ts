import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import { cancelPipeline } from '../operations/cancel-pipeline.js';
import type { DaemonContext } from '../operations/context.js';
import { createPipeline } from '../operations/create-pipeline.js';
import { getPipeline } from '../operations/get-pipeline.js';
import { listPipelines } from '../operations/list-pipelines.js';
import { startPipeline } from '../operations/start-pipeline.js';
import type { Caller } from './access/authenticator.js';

type PipelineOperations = Pick<
  DaemonOperations,
  'listPipelines' | 'createPipeline' | 'getPipeline' | 'startPipeline' | 'cancelPipeline'
>;

export function pipelineHandlers(
  context: Pick<DaemonContext, 'pipelines'>,
): Handlers<PipelineOperations, Caller> {
  return {
    listPipelines: async () => ({ status: 200, body: await listPipelines(context) }),
    createPipeline: async ({ body }) => {
      const pipeline = await createPipeline(context, body);
      const headers = { Location: `/api/v1/pipelines/${pipeline.id}` };
      return { status: 201, body: pipeline, headers };
    },
    getPipeline: async ({ params }) => ({
      status: 200,
      body: await getPipeline(context, params.id),
    }),
    startPipeline: async ({ params }) => ({
      status: 200,
      body: await startPipeline(context, params.id),
    }),
    cancelPipeline: async ({ params }) => ({
      status: 200,
      body: await cancelPipeline(context, params.id),
    }),
  };
}
