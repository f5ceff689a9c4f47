import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import type { DaemonContext } from '../operations/context.js';
import type { Caller } from './access/authenticator.js';

type PipelineOperations = Pick<
  DaemonOperations,
  'listPipelines' | 'createPipeline' | 'getPipeline' | 'startPipeline' | 'cancelPipeline'
>;

export function pipelineHandlers({
  pipelines,
}: Pick<DaemonContext, 'pipelines'>): Handlers<PipelineOperations, Caller> {
  return {
    listPipelines: async () => ({ status: 200, body: { pipelines: await pipelines.list() } }),
    createPipeline: async ({ body }) => {
      const pipeline = await pipelines.create(body);
      const headers = { Location: `/api/v1/pipelines/${pipeline.id}` };
      return { status: 201, body: pipeline, headers };
    },
    getPipeline: async ({ params }) => ({
      status: 200,
      body: await pipelines.get(params.id),
    }),
    startPipeline: async ({ params }) => ({
      status: 200,
      body: await pipelines.start(params.id),
    }),
    cancelPipeline: async ({ params }) => ({
      status: 200,
      body: await pipelines.cancel(params.id),
    }),
  };
}
