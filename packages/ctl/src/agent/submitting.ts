import { Refusal, UsageError } from '@millrace/kit/errors';
import { queueApi, type QueueFlags } from '../queue/api.js';
import { submissionOf, waitOf, type SubmitFlags } from '../queue/submission.js';
import { submitTask } from '../queue/submitting.js';
import type { Tools } from '../tools.js';
import { promptOf } from './prompt.js';
import { spawnRequest, type WorkFlags } from './spawning.js';

export interface SubmitWorkFlags
  extends
    WorkFlags,
    QueueFlags,
    Pick<
      SubmitFlags,
      'at' | 'delay' | 'priority' | 'group' | 'id' | 'expiresAt' | 'wait' | 'timeout'
    > {
  queue?: string;
}

/** The queue that `ctl up` makes for agents, and the handler its tasks name. */
export const agentsQueue = 'agents';
const handler = 'agent';

/** Lays work in the queue: it waits its turn, outlives restarts and is tried again. */
export async function submitWork(
  given: string | undefined,
  flags: SubmitWorkFlags,
  tools: Tools,
): Promise<void> {
  const prompt = await promptOf(given, 'prompt', tools.terminal);
  const { at, delay, priority, group, id, expiresAt } = flags;
  const wait = waitOf(flags);
  const payload = JSON.stringify(spawnRequest(prompt, flags));
  if (Buffer.byteLength(payload) > longestPayload) {
    throw new UsageError('The prompt is too long for a task: name a file that the agent can read.');
  }
  const task = await submissionOf(
    handler,
    undefined,
    {
      payload,
      contentType: 'application/json',
      ...(at === undefined ? {} : { at }),
      ...(delay === undefined ? {} : { delay }),
      ...(priority === undefined ? {} : { priority }),
      ...(group === undefined ? {} : { group }),
      ...(id === undefined ? {} : { id }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    },
    tools.terminal,
  );
  const queue = flags.queue ?? agentsQueue;
  await submitTask(queueApi(flags, tools), { queue, task, wait }, tools).catch((error: unknown) => {
    throw queue === agentsQueue ? withWhoMakesIt(error) : error;
  });
  if (tools.terminal.json || wait !== undefined) return;
  tools.terminal.out.write(`See how it fares with \`ctl queue get ${task.id}\`.\n`);
}

/** Nobody has to know the config of a queue that `ctl up` makes by itself. */
function withWhoMakesIt(error: unknown): unknown {
  if (!(error instanceof Refusal) || error.code !== 'QUEUE_NOT_FOUND') return error;
  const detail =
    `there is no queue "${agentsQueue}" yet. \`ctl up\` makes it when it starts; another one is ` +
    'named with --queue.';
  return new Refusal(error.code, detail, { cause: error });
}

/** What the queue takes, whatever the config of the queue says. */
const longestPayload = 8 * 1_048_576;
