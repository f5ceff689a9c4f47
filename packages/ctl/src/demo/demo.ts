import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { fakeAgentProgram } from '@millrace/daemon/fake-agent';
import { Refusal } from '@millrace/kit/errors';
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { asTyped } from '../base/command-name.js';
import { readOutput } from '../agent/logs.js';
import { readSessions } from '../agent/find-session.js';
import { agentsQueue } from '../agent/submitting.js';
import { daemonApi } from '../daemon/api.js';
import { queueApi } from '../queue/api.js';
import type { Tools } from '../base/tools.js';
import { renderTable } from '../render/table.js';
import { bringUp, type BroughtUp } from '../up/bring-up.js';
import { runParts } from '../up/supervisor.js';
import { observeTask, type Observed } from './observing.js';
import { sandboxTools, createSandbox, type Sandbox } from './sandbox.js';
import { DemoReporter } from './reporter.js';

export interface DemoFlags {
  keep?: boolean;
}

const anyPort = '127.0.0.1:0';
const addresses = {
  dbGrpc: anyPort,
  dbHttp: anyPort,
  queueListen: anyPort,
  queueGrpc: anyPort,
  metricsListen: anyPort,
  listen: anyPort,
};

/** Runs an end-to-end demo in a temporary directory that is removed afterwards. */
export async function runDemo({ keep = false }: DemoFlags, tools: Tools): Promise<void> {
  const story = new DemoReporter(tools.terminal);
  const stage = createSandbox(fakeAgentProgram, tools.terminal.env);
  const staged = sandboxTools(tools, stage);
  tools.lifecycle.interrupted.addEventListener('abort', () => stage.remove());
  try {
    await tools.lifecycle.serve(async (stopped) => {
      story.step('Start the database, the queue and the daemon', `ctl up --data ${stage.dataDir}`);
      const up = await bringUp({ dataDir: stage.dataDir, addresses, stopped }, staged);
      let hasEnded = Promise.resolve();
      try {
        if (!up.hasStarted) throw stoppedEarly();
        reportAddresses(up, story);
        await play(up, stage, { story, stopped }, staged);
        if (keep) hasEnded = keepOpen(stage, up, stopped, story);
      } finally {
        await runParts(up.supervised, hasEnded);
      }
    });
  } finally {
    stage.remove();
  }
  const { out, json } = tools.terminal;
  if (!json) out.write(`\nStopped everything and removed ${stage.folder}.\n`);
}

function stoppedEarly(): Refusal {
  return new Refusal('CANCELLED', 'The demo was interrupted.');
}

function reportAddresses(up: BroughtUp, story: DemoReporter): void {
  for (const { part } of up.supervised) {
    story.saw(`${part.title.padEnd(8)}  ${up.url(part.name)}`, {
      component: part.name,
      url: up.url(part.name),
    });
  }
}

interface Telling {
  readonly story: DemoReporter;
  readonly stopped: Promise<void>;
}

async function play(
  up: BroughtUp,
  stage: Sandbox,
  { story, stopped }: Telling,
  staged: Tools,
): Promise<void> {
  const abort = new AbortController();
  void stopped.then(() => abort.abort(stoppedEarly()));
  const queue = queueApi({ url: up.url('queue') }, staged);
  const daemon = await daemonApi({ url: up.url('daemon') }, staged);
  const observed: Observed = { queue, daemon, story, signal: abort.signal };
  await hurryUp(observed);

  const greet = {
    name: 'greet',
    prompt: 'sleep 1, write hello.txt and say Hello, I am a fake agent.',
  };
  story.step('Queue work for an agent', submitLine(greet));
  await demand(observed, await submit(observed, stage, greet), 'SUCCEEDED');
  await reportOutput(observed);

  const fragile = { name: 'fragile', prompt: 'crash 3 unless fixed.txt and say It is fixed.' };
  story.step('Queue work that fails', submitLine(fragile));
  const id = await submit(observed, stage, fragile);
  await demand(observed, id, 'DEAD');
  const { body: page } = await queue.call('listDlq', { queue: agentsQueue });
  story.saw(`the dead-letter queue has ${page.tasks.length}: kept until you redrive or purge it`, {
    dlq_depth: page.tasks.length,
  });

  story.step('Fix the cause and try again', `touch fixed.txt; ctl queue redrive agents ${id}`);
  writeFileSync(join(stage.workdir, 'fixed.txt'), '');
  await queue.call('redriveDlq', { queue: agentsQueue, body: { ids: [id] } });
  await demand(observed, id, 'SUCCEEDED');
  await reportOutput(observed);
  await sumUp(observed, staged);
}

/** Short backoff, so that the demo takes less than a minute. */
async function hurryUp({ queue }: Observed): Promise<void> {
  const { body } = await queue.call('getQueueConfig', { queue: agentsQueue });
  const { name: _n, paused: _p, version: _v, created_at: _c, updated_at: _u, ...config } = body;
  const retry = { ...config.retry, max_attempts: 2, initial_backoff_ms: 500 };
  await queue.call('putQueueConfig', { queue: agentsQueue, body: { ...config, retry } });
}

interface Work {
  readonly name: string;
  readonly prompt: string;
}

function submitLine({ name, prompt }: Work): string {
  return `ctl agent submit "${prompt}" --name ${name}`;
}

/** Fails if the demo does not do what it prints. */
async function demand(observed: Observed, id: string, end: 'SUCCEEDED' | 'DEAD'): Promise<void> {
  const { status } = await observeTask(observed, id);
  if (status === end) return;
  throw new Refusal('DEMO_FAILED', `the task should be ${end} and is ${status}.`);
}

async function submit({ queue }: Observed, stage: Sandbox, work: Work): Promise<string> {
  const { backend, workdir } = stage;
  const request: DaemonSchema<'SpawnRequest'> = { ...work, backend, cwd: workdir };
  const id = systemRandom.ulid(systemClock.now());
  const payload = Buffer.from(JSON.stringify(request)).toString('base64');
  const task = { id, handler_ref: 'agent', payload, payload_content_type: 'application/json' };
  await queue.call('submitTask', { queue: agentsQueue, body: task });
  return id;
}

/** The output of the newest agent. */
async function reportOutput({ daemon, story }: Observed): Promise<void> {
  const [newest] = await readSessions(daemon);
  if (!newest) return;
  const { lines } = await readOutput(daemon, newest, { limit: 3 });
  const said = lines.join('\n').trim();
  if (said !== '') story.saw(`it said: ${said}`, { agent: newest.id, said });
}

async function sumUp({ queue, daemon, story }: Observed, { terminal }: Tools): Promise<void> {
  const [sessions, { body: stats }] = await Promise.all([
    readSessions(daemon),
    queue.call('getStats', { queue: agentsQueue }),
  ]);
  const done = sessions.filter(({ status }) => status === 'done').length;
  const facts = {
    tasks: 2,
    agents: sessions.length,
    agents_done: done,
    dlq_depth: stats.dlq_depth,
  };
  story.step('Summary');
  const rows = [
    ['tasks submitted', '2'],
    ['agents that ran', `${sessions.length}, of which ${done} succeeded`],
    ['left in the dead-letter queue', String(stats.dlq_depth)],
    ['time', story.elapsed],
  ];
  const table = renderTable(['', ''], rows, terminal.out);
  story.say(table.trimEnd());
  story.end(facts);
}

/** Resolves on Ctrl-C. */
function keepOpen(
  stage: Sandbox,
  up: BroughtUp,
  stopped: Promise<void>,
  story: DemoReporter,
): Promise<void> {
  story.step('Explore', `export MILLRACE_DATA_DIR=${stage.dataDir}; ctl status`);
  story.saw(
    asTyped('`ctl open`') + ` opens the dashboard at ${up.url('daemon')}. Ctrl-C stops everything.`,
    {
      dashboard: up.url('daemon'),
    },
  );
  return stopped;
}
