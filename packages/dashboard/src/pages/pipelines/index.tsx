import type { DaemonSchema } from '@millrace/contract/daemon';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { queries } from '../../api/queries.js';
import { DefinitionDialog } from '../../parts/definition-dialog.js';
import { Page } from '../../parts/page.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { VirtualTable, type Column } from '../../parts/virtual-table.js';
import { PipelineView } from './pipeline-view.js';
import { pipelineTones } from './tones.js';
import './pipelines.css';

type Pipeline = DaemonSchema<'Pipeline'>;

const example = `name: Release check
jobs:
  - id: test
    prompt: Run the tests and fix what fails.
  - id: review
    prompt: Review the change.
    depends_on: [test]
`;

export default function PipelinesPage({ params }: { params: Readonly<Record<string, string>> }) {
  const pipelines = useQuery(queries.pipelines());
  const [isCreating, setIsCreating] = useState(false);
  useShortcut('n', 'New pipeline', () => setIsCreating(true));
  return (
    <Page
      title="Pipelines"
      actions={
        <button type="button" className="primary" onClick={() => setIsCreating(true)}>
          New pipeline
        </button>
      }
    >
      <Loaded query={pipelines}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="No pipelines yet.">
              A pipeline is a set of jobs with dependencies. Create one here, or with{' '}
              <code>ctl pipeline run pipeline.yaml</code>.
            </Empty>
          ) : (
            <Pipelines pipelines={list} id={params['id']} />
          )
        }
      </Loaded>
      {isCreating && (
        <DefinitionDialog
          kind="pipeline"
          list="pipelines"
          example={example}
          hint={
            <>
              YAML or JSON. With <code>start: false</code> it does not start on its own.
            </>
          }
          onClose={() => setIsCreating(false)}
        />
      )}
    </Page>
  );
}

const columns: readonly Column<Pipeline>[] = [
  {
    id: 'name',
    header: 'Pipeline',
    width: 'minmax(0, 1fr)',
    cell: ({ id, name }) => (
      <Link href={`/pipelines/${id}`} className="row-link">
        {name}
      </Link>
    ),
  },
  {
    id: 'status',
    header: 'Status',
    width: '6rem',
    cell: ({ status }) => <Status tone={pipelineTones[status]}>{status}</Status>,
  },
  {
    id: 'jobs',
    header: 'Jobs',
    width: '4rem',
    numeric: true,
    cell: ({ jobs }) => `${jobs.filter(({ status }) => isFinished(status)).length}/${jobs.length}`,
  },
  {
    id: 'changed',
    header: 'Updated',
    width: '6.5rem',
    wideOnly: true,
    cell: ({ updated_at }) => <Time at={updated_at} />,
  },
];

const isFinished = (status: DaemonSchema<'JobStatus'>) => status === 'done' || status === 'skipped';

function Pipelines({ pipelines, id }: { pipelines: readonly Pipeline[]; id: string | undefined }) {
  const chosen = id === undefined ? pipelines[0] : pipelines.find((one) => one.id === id);
  return (
    <>
      <div className="pipelines-list">
        <VirtualTable
          label="Pipelines"
          columns={columns}
          rows={pipelines}
          rowKey={(pipeline) => pipeline.id}
          rowHeight={36}
          narrowRowHeight={44}
          selectedKey={chosen?.id}
        />
      </div>
      {chosen ? (
        <PipelineView key={chosen.id} pipeline={chosen} />
      ) : (
        <Empty title="This pipeline does not exist.">
          <Link href="/pipelines">Show the newest pipeline</Link>
        </Empty>
      )}
    </>
  );
}
