import { Refusal, UsageError } from '@millrace/kit/errors';
import { asTyped } from '../base/command-name.js';
import { queueApi, type QueueFlags } from '../queue/api.js';
import { submissionOf, waitOf, type SubmitFlags } from '../queue/submission.js';
import { submitTask } from '../queue/submitting.js';
import type { Tools } from '../base/tools.js';
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
  label?: string[];
}

/** Queue that `ctl up` creates for agents, and the handler its tasks name. */
export const agentsQueue = 'agents';
const handler = 'agent';

/** Queues work for an agent: it survives restarts and is retried. */
export async function submitWork(
  given: string | undefined,
  flags: SubmitWorkFlags,
  tools: Tools,
): Promise<void> {
  const prompt = await promptOf(given, 'prompt', tools.terminal);
  const { at, delay, priority, group, id, expiresAt } = flags;
  const wait = waitOf(flags);
  const payload = JSON.stringify(spawnRequest(prompt, flags));
  if (Buffer.byteLength(payload) > maxPayload) {
    throw new UsageError(
      'The prompt is too long for a task. Put it into a file and name that file in the ' +
        'prompt.',
    );
  }
  const { handlerRef, header } = labelled(flags.label ?? []);
  const task = await submissionOf(
    handlerRef,
    undefined,
    {
      payload,
      ...(header && { header }),
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
  tools.terminal.out.write(asTyped(`Check it with \`ctl queue get ${task.id}\`.\n`));
}

/**
 * The first label is a part of the handler, so that only machines with it claim the task; the
 * header lists all of them.
 */
function labelled(labels: readonly string[]): { handlerRef: string; header?: string[] } {
  const [first] = labels;
  if (first === undefined) return { handlerRef: handler };
  for (const label of labels) {
    if (/^[A-Za-z0-9][A-Za-z0-9._-]*=[A-Za-z0-9][A-Za-z0-9._-]*$/.test(label)) continue;
    throw new UsageError(`--label must be KEY=VALUE, such as gpu=true, not "${label}".`);
  }
  const handlerRef = `${handler}.${first.replace('=', ':')}`;
  return { handlerRef, header: [`x-agent-labels: ${labels.join(',')}`] };
}

/** Adds how to create the queue to the error, since `ctl up` normally does it. */
function withWhoMakesIt(error: unknown): unknown {
  if (!(error instanceof Refusal) || error.code !== 'QUEUE_NOT_FOUND') return error;
  const detail =
    `there is no queue "${agentsQueue}" yet. Start \`ctl up\`, which creates it, or name ` +
    'another queue with --queue.';
  return new Refusal(error.code, detail, { cause: error });
}

/** Largest payload that the queue accepts, whatever its config says. */
const maxPayload = 8 * 1_048_576;
