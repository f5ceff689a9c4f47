import type { DaemonSchema } from '@millrace/contract/daemon';
import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { readSessions } from '../agent/find-session.js';
import type { DaemonApi } from '../daemon/api.js';
import type { QueueApi } from '../queue/api.js';
import { lastErrorText } from '../queue/task-view.js';
import { rest } from '../base/rest.js';
import type { DemoReporter } from './reporter.js';

type Task = QueueSchema<'Task'>;
type Session = DaemonSchema<'Session'>;

const pollMs = 150;
const patienceMs = 60_000;

export interface Observed {
  readonly queue: QueueApi;
  readonly daemon: DaemonApi;
  readonly story: DemoReporter;
  readonly signal: AbortSignal;
}

/** Reports every change of a task and its agents until the task has ended. */
export async function observeTask(
  { queue, daemon, story, signal }: Observed,
  id: string,
): Promise<Task> {
  const endsAt = systemClock.monotonic() + patienceMs;
  const before = new Map<string, string>();
  const known = new Set((await readSessions(daemon)).map((session) => session.id));
  for (;;) {
    const { body: task } = await queue.call('getTask', { id });
    // Read after the task, so that the end of a task is reported after its agent.
    for (const session of (await readSessions(daemon)).toReversed()) {
      if (known.has(session.id) || before.get(session.id) === session.status) continue;
      before.set(session.id, session.status);
      story.saw(agentText(session), { agent: session.id, status: session.status });
    }
    const state = `${task.status} ${task.attempt}`;
    if (before.get(id) !== state) {
      before.set(id, state);
      story.saw(taskText(task), { task: id, status: task.status, attempt: task.attempt });
    }
    if (task.status === 'SUCCEEDED' || task.status === 'DEAD') return task;
    if (systemClock.monotonic() > endsAt) {
      throw new Refusal('TIMEOUT', `${id} is still ${task.status} after a minute. This is a bug.`);
    }
    await rest(pollMs, signal);
  }
}

function agentText({ name, status, status_reason: reason }: Session): string {
  return `agent "${name}" is ${status}${reason === null ? '' : `: ${reason}`}`;
}

function taskText(task: Task): string {
  const { status, attempt, max_attempts: most, last_error: error } = task;
  switch (status) {
    case 'PENDING':
      return attempt === 0
        ? 'task is PENDING'
        : `task is PENDING again, ${attempt} of ${most} attempts failed`;
    case 'IN_FLIGHT':
      return `task is IN_FLIGHT, attempt ${attempt} of ${most}`;
    case 'SUCCEEDED':
      return 'task is SUCCEEDED';
    case 'DEAD':
      return `task is DEAD${error ? `: ${firstLine(lastErrorText(task))}` : ''}`;
  }
}

function firstLine(text: string): string {
  return text.split('\n')[0]!;
}
