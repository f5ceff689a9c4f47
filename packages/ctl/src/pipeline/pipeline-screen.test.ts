import type { DaemonSchema } from '@millrace/contract/daemon';
import * as daemonLists from '@millrace/contract/lists/daemon';
import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { plain } from '../render/paint.js';
import { listText } from '../base/list-text.js';
import { inTurn, pipelineScreen } from './pipelines.js';

type Pipeline = DaemonSchema<'Pipeline'>;
type Job = DaemonSchema<'Job'>;

const now = Date.parse('2026-01-15T09:30:00.000Z');
const example = contractExample('Pipeline');
const job = (id: string, depends_on: string[], more: Partial<Job> = {}): Job => ({
  ...example.jobs[1]!,
  id,
  depends_on,
  ...more,
});
const stalled: Pipeline = {
  ...example,
  status: 'stalled',
  jobs: [
    { ...example.jobs[0]!, status: 'done' },
    job('release', ['docs', 'test']),
    job('docs', ['build'], { status: 'done' }),
    job('test', ['build'], { status: 'failed' }),
    job('tell', ['test'], {
      run_if: 'failure',
      status: 'needs_attention',
      session_id: '01K9ZQ5A2N4P6R8S0T1V3W5X7Y',
    }),
    job('sweep', ['build', 'test'], { run_if: 'always' }),
    job('lint', []),
  ],
};

test('each job is below what it comes after, at 80 columns', () => {
  expect(pipelineScreen(stalled, now, { columns: 80, paint: plain })).toBe(
    `
pipeline    upload (01K9ZR0B1C2D3E4F5G6H7J8K9M)
status      stalled
repository  /home/ada/src/mill
created     2026-01-15T09:20:00.000Z (10m ago)

JOB          STATUS           BACKEND  TRIGGER
build        done             claude   immediately
  docs       done             default  after build
  test       failed           default  after build
    release  pending          default  after test, docs
    tell     needs_attention  default  if failed: test
    sweep    pending          default  after any end of test, build
lint         pending          default  immediately
A job waits for your input: ctl agent explain 01K9ZQ5A2N4P6R8S0T1V3W5X7Y
Run the failed jobs again: ctl pipeline start 01K9ZR0B1C2D3E4F5G6H7J8K9M
`.slice(1),
  );
});

test('at 140 columns the agents of the jobs are named', () => {
  const screen = pipelineScreen(example, now, { columns: 140, paint: plain });
  expect(screen.split('\n\n')[1]).toBe(
    `
JOB     STATUS   BACKEND  TRIGGER      AGENT
build   running  claude   immediately  01K9ZQ4M7T3V8X2B6C0D5E1F9G
  docs  pending  default  after build  -
`.slice(1),
  );
});

test.for([80, 140])('the list at %i columns', (columns) => {
  const wide = columns === 140;
  const screen = listText(daemonLists.pipelines, [stalled], now, { columns, paint: plain });
  expect(screen).toBe(
    wide
      ? `
ID        NAME    STATUS   JOBS                                      CREATED  REPOSITORY
01K9ZR0B  upload  stalled  2 of 7 done, 1 failed, 1 needs attention  10m ago  /home/ada/src/mill
`.slice(1)
      : `
ID        NAME    STATUS   JOBS                                      CREATED
01K9ZR0B  upload  stalled  2 of 7 done, 1 failed, 1 needs attention  10m ago
`.slice(1),
  );
  expect(listText(daemonLists.pipelines, [], now, { columns, paint: plain })).toMatch(
    /ctl pipeline run FILE/,
  );
});

test('every job is placed once, whatever the order of the file', () => {
  const shuffled = stalled.jobs.toReversed();
  expect(
    inTurn(shuffled)
      .map(({ job: { id } }) => id)
      .toSorted(),
  ).toEqual(stalled.jobs.map(({ id }) => id).toSorted());
});

test('a pipeline that waits for something says how to go on', () => {
  const sheet = { columns: 80, paint: plain };
  const said = (status: Pipeline['status']) => pipelineScreen({ ...example, status }, now, sheet);
  expect(said('paused')).toMatch(/spend cap holds it.*ctl pipeline start/);
  expect(said('pending')).toMatch(/Start it: ctl pipeline start/);
  expect(said('running')).not.toContain('ctl pipeline');
});
