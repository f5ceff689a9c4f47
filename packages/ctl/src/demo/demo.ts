import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { fakeAgentProgram } from '@millrace/daemon/fake-agent';
import { Refusal } from '@millrace/kit/errors';
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { readOutput } from '../agent/logs.js';
import { readSessions } from '../agent/finding.js';
import { agentsQueue } from '../agent/submitting.js';
import { daemonApi } from '../daemon/api.js';
import { queueApi } from '../queue/api.js';
import type { Tools } from '../tools.js';
import { renderTable } from '../render/table.js';
import { bringUp, type BroughtUp } from '../up/bring-up.js';
import { runParts } from '../up/supervisor.js';
import { observeTask, type Observed } from './observing.js';
import { onStage, setStage, type Stage } from './stage.js';
import { Story } from './story.js';

export interface DemoFlags {
  keep?: boolean;
}

const anyPort = '127.0.0.1:0';
const addresses = {
  dbGrpc: anyPort,
  dbHttp: anyPort,
  queueListen: anyPort,
  metricsListen: anyPort,
  listen: anyPort,
};

/** Shows the whole way of a task, on a stage of its own that is cleared away again. */
export async function runDemo({ keep = false }: DemoFlags, tools: Tools): Promise<void> {
  const story = new Story(tools.terminal);
  const stage = setStage(fakeAgentProgram, tools.terminal.env);
  const staged = onStage(tools, stage);
  tools.lifecycle.interrupted.addEventListener('abort', () => stage.remove());
  try {
    await tools.lifecycle.serve(async (stopped) => {
      story.step('Start the database, the queue and the daemon', `ctl up --data ${stage.dataDir}`);
      const up = await bringUp({ dataDir: stage.dataDir, addresses, stopped }, staged);
      let hasEnded = Promise.resolve();
      try {
        if (!up.hasStarted) throw stoppedEarly();
        tellAddresses(up, story);
        await play(up, stage, { story, stopped }, staged);
        if (keep) hasEnded = keepOpen(stage, up, stopped, story);
      } finally {
        await runParts(up.kept, hasEnded);
      }
    });
  } finally {
    stage.remove();
  }
  const { out, json } = tools.terminal;
  if (!json) out.write(`\nAll is stopped and ${stage.folder} is removed.\n`);
}

function stoppedEarly(): Refusal {
  return new Refusal('CANCELLED', 'The demo was stopped before its end.');
}

function tellAddresses(up: BroughtUp, story: Story): void {
  for (const { part } of up.kept) {
    story.saw(`${part.title.padEnd(8)}  ${up.url(part.name)}`, {
      component: part.name,
      url: up.url(part.name),
    });
  }
}

interface Telling {
  readonly story: Story;
  readonly stopped: Promise<void>;
}

async function play(
  up: BroughtUp,
  stage: Stage,
  { story, stopped }: Telling,
  staged: Tools,
): Promise<void> {
  const abort = new AbortController();
  void stopped.then(() => abort.abort(stoppedEarly()));
  const queue = queueApi({ url: up.url('queue') }, staged);
  const daemon = await daemonApi({ url: up.url('daemon') }, staged);
  const observed: Observed = { queue, daemon, story, signal: abort.signal };
  await hurryUp(observed);

  const greet = { name: 'greet', prompt: 'sleep 1, write hello.txt and say Hello, I am made up.' };
  story.step('Lay work for an agent in the queue', submitLine(greet));
  await demand(observed, await submit(observed, stage, greet), 'SUCCEEDED');
  await tellOutput(observed);

  const fragile = { name: 'fragile', prompt: 'crash 3 unless mended.txt and say It is mended.' };
  story.step('Lay work in the queue that fails', submitLine(fragile));
  const id = await submit(observed, stage, fragile);
  await demand(observed, id, 'DEAD');
  const { body: page } = await queue.call('listDlq', { queue: agentsQueue });
  story.saw(`the dead-letter queue has ${page.tasks.length}: kept until someone decides`, {
    dlq_depth: page.tasks.length,
  });

  story.step('Mend the cause and try again', `touch mended.txt; ctl queue redrive agents ${id}`);
  writeFileSync(join(stage.workdir, 'mended.txt'), '');
  await queue.call('redriveDlq', { queue: agentsQueue, body: { ids: [id] } });
  await demand(observed, id, 'SUCCEEDED');
  await tellOutput(observed);
  await sumUp(observed, staged);
}

/** People who watch do not want to wait half a minute between two attempts. */
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

/** A demo that goes another way than it tells would be worse than none. */
async function demand(observed: Observed, id: string, end: 'SUCCEEDED' | 'DEAD'): Promise<void> {
  const { status } = await observeTask(observed, id);
  if (status === end) return;
  throw new Refusal('DEMO_FAILED', `the task should have ended ${end} and is ${status}.`);
}

async function submit({ queue }: Observed, stage: Stage, work: Work): Promise<string> {
  const { backend, workdir } = stage;
  const request: DaemonSchema<'SpawnRequest'> = { ...work, backend, cwd: workdir };
  const id = systemRandom.ulid(systemClock.now());
  const payload = Buffer.from(JSON.stringify(request)).toString('base64');
  const task = { id, handler_ref: 'agent', payload, payload_content_type: 'application/json' };
  await queue.call('submitTask', { queue: agentsQueue, body: task });
  return id;
}

/** What the newest agent said. */
async function tellOutput({ daemon, story }: Observed): Promise<void> {
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
  story.step('What happened');
  const rows = [
    ['tasks submitted', '2'],
    ['agents that ran', `${sessions.length}, of which ${done} ended well`],
    ['left in the dead-letter queue', String(stats.dlq_depth)],
    ['time', story.elapsed],
  ];
  const table = renderTable([{ title: '' }, { title: '' }], rows, terminal.out);
  story.say(table.trimEnd());
  story.end(facts);
}

/** Resolves when the person has seen enough. */
function keepOpen(
  stage: Stage,
  up: BroughtUp,
  stopped: Promise<void>,
  story: Story,
): Promise<void> {
  story.step('Look around', `export MILLRACE_DATA_DIR=${stage.dataDir}; ctl status`);
  story.saw(`\`ctl open\` shows the dashboard at ${up.url('daemon')}. Ctrl-C ends everything.`, {
    dashboard: up.url('daemon'),
  });
  return stopped;
}
