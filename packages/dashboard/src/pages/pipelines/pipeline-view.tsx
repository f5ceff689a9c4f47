import type { DaemonSchema } from '@millrace/contract/daemon';
import { Link } from 'wouter';
import { daemon } from '../../api/client.js';
import { useAction } from '../../parts/action.js';
import { Confirm } from '../../parts/confirm.js';
import { Button, DialogButton } from '../../parts/controls.js';
import { baseName } from '../../parts/format.js';
import { Graph, type GraphNode } from '../../parts/graph.js';
import { useIdParam } from '../../parts/location.js';
import { Panel } from '../../parts/page.js';
import { Status } from '../../parts/status.js';
import { Time } from '../../parts/time.js';
import { jobTones, pipelineTones } from './tones.js';

type Pipeline = DaemonSchema<'Pipeline'>;
type Job = DaemonSchema<'Job'>;

/** One pipeline: status, graph, and the selected job. */
export function PipelineView({ pipeline }: { pipeline: Pipeline }) {
  const [selected, setSelected] = useIdParam('job');
  const job = pipeline.jobs.find(({ id }) => id === selected);
  return (
    <Panel title={pipeline.name} actions={<PipelineControls pipeline={pipeline} />}>
      <div className="work-facts">
        <Status tone={pipelineTones[pipeline.status]}>{pipeline.status}</Status>
        {pipeline.repo && <span title={pipeline.repo}>{baseName(pipeline.repo)}</span>}
        <span className="muted">
          created <Time at={pipeline.created_at} />, updated <Time at={pipeline.updated_at} />
        </span>
      </div>
      <Graph
        label="Jobs and their dependencies"
        nodes={pipeline.jobs.map(nodeOf)}
        selected={selected}
        onSelect={setSelected}
      />
      {job ? (
        <JobDetails job={job} />
      ) : (
        <p className="muted panel-body">Select a job to see its prompt and output.</p>
      )}
    </Panel>
  );
}

function nodeOf({ id, status, depends_on: after, run_if }: Job): GraphNode {
  const note = after.length > 0 ? `after ${after.join(', ')}, on ${run_if}` : '';
  return { id, name: id, after, status, tone: jobTones[status], note };
}

function PipelineControls({ pipeline: { id, name, status } }: { pipeline: Pipeline }) {
  const path = { id };
  const start = useAction({
    run: () => daemon.call('startPipeline', { path }),
    done: () => `Started ${name}.`,
    refresh: ['pipelines'],
  });
  if (status === 'done' || status === 'canceled') return null;
  return (
    <>
      {status !== 'running' && (
        <Button className="primary small" action={start}>
          {startTexts[status] ?? 'Start'}
        </Button>
      )}
      <DialogButton className="danger small" label="Cancel pipeline">
        {(onClose) => (
          <Confirm
            title={`Cancel ${name}?`}
            submitLabel="Cancel pipeline"
            dangerous
            run={() => daemon.call('cancelPipeline', { path })}
            done={() => `Canceled ${name}.`}
            refresh={['pipelines']}
            onClose={onClose}
          >
            <p>
              Running jobs are stopped and pending jobs are skipped. A canceled pipeline cannot be
              restarted.
            </p>
          </Confirm>
        )}
      </DialogButton>
    </>
  );
}

const startTexts: Partial<Record<Pipeline['status'], string>> = {
  paused: 'Continue over budget',
  stalled: 'Retry failed jobs',
};

function JobDetails({ job }: { job: Job }) {
  return (
    <section className="work-item" aria-label={`Job ${job.id}`}>
      <div className="row">
        <h3>{job.id}</h3>
        <Status tone={jobTones[job.status]}>{job.status}</Status>
        <span className="muted">{job.backend ?? 'default backend'}</span>
        {job.depends_on.length > 0 && (
          <span className="muted">
            runs on {job.run_if} of {job.depends_on.join(', ')}
          </span>
        )}
        {job.session_id && <Link href={`/agents/${job.session_id}`}>Open agent</Link>}
      </div>
      <h4>Prompt</h4>
      <pre className="work-text">{job.prompt}</pre>
      {job.output !== null && (
        <>
          <h4>Output</h4>
          <pre className="work-text" tabIndex={0}>
            {job.output || 'No output.'}
          </pre>
        </>
      )}
    </section>
  );
}
