import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { queries } from '../../api/queries.js';
import { DefinitionPage } from '../../parts/definition-page.js';
import { PipelineView } from './pipeline-view.js';
import { pipelineTones } from './tones.js';

const example = `name: Release check
jobs:
  - id: test
    prompt: Run the tests and fix what fails.
  - id: review
    prompt: Review the change.
    depends_on: [test]
`;

const isFinished = (status: DaemonSchema<'JobStatus'>) => status === 'done' || status === 'skipped';

export default function PipelinesPage({ params }: { params: Readonly<Record<string, string>> }) {
  return (
    <DefinitionPage
      title="Pipelines"
      kind="pipeline"
      list="pipelines"
      example={example}
      hint={
        <>
          YAML or JSON. With <code>start: false</code> it does not start on its own.
        </>
      }
      empty={
        <>
          A pipeline is a set of jobs with dependencies. Create one here, or with{' '}
          <code>ctl pipeline run pipeline.yaml</code>.
        </>
      }
      query={useQuery(queries.pipelines())}
      id={params['id']}
      nameOf={({ name }) => name}
      tones={pipelineTones}
      parts={[
        'Jobs',
        ({ jobs }) => `${jobs.filter(({ status }) => isFinished(status)).length}/${jobs.length}`,
      ]}
      view={(pipeline) => <PipelineView key={pipeline.id} pipeline={pipeline} />}
    />
  );
}
