/** What several cases do. */
import assert from 'node:assert/strict';

const over = ['done', 'errored', 'rate_limited'];

export async function headless(world, cli, prompt, limitMs = 120_000) {
  const { id } = await world.spawn({ backend: cli.name, driver: 'headless', prompt });
  return world.reach(id, over, limitMs);
}

/** An interactive agent after its first turn. */
export async function interactive(world, cli, prompt = '[[say hello]]') {
  const { id } = await world.spawn({ backend: cli.name, driver: 'tmux', prompt });
  const session = await world.reach(id, ['idle', 'errored', 'done'], 120_000);
  assert.equal(session.status, 'idle', `${session.status_reason} ${session.last_error}`);
  return session;
}

export async function turn(world, id, text) {
  await world.send(id, text);
  const session = await world.reach(id, ['idle', 'errored', 'done'], 60_000);
  assert.equal(session.status, 'idle', session.status_reason);
  return session;
}

/** The prompts that the model was sent since that request, newest last. */
export function promptsSince(world, start) {
  return world.model.requests.slice(start).map(({ prompt }) => prompt ?? '');
}

/** Everything of a request but its system prompt and tools, as one text. */
export function userTextIn(body) {
  return JSON.stringify(body?.messages ?? body?.input ?? body?.contents ?? '');
}

/** Waits until the task of the queue is so. */
export async function taskReaches(world, id, isSo, limitMs = 180_000) {
  let task;
  await world.until(
    () => `the task ${id} ends: ${JSON.stringify(task)?.slice(0, 400)}`,
    async () => {
      task = JSON.parse(await world.ctl('queue', 'get', id, '--json'));
      return isSo(task);
    },
    limitMs,
  );
  return task;
}

/** The screen may show the end of a turn a moment before the transcript has its counts. */
export async function contextReaches(world, id, tokens, limitMs = 20_000) {
  let session;
  await world.until(
    () => `the context holds ${tokens} tokens (it holds ${session?.context_tokens})`,
    async () => {
      session = await world.session(id);
      return session.context_tokens === tokens;
    },
    limitMs,
  );
  return session;
}

/** Answers each first-run dialog with its first choice, until the first turn is over. */
export async function answerDialogs(world, id) {
  const answered = new Set();
  let session;
  await world.until(
    () => `${id} is idle (it is ${session?.status}: ${session?.status_reason})`,
    async () => {
      session = await world.session(id);
      if (session.status !== 'waiting_for_input') {
        return ['idle', 'errored', 'done'].includes(session.status);
      }
      // A dialog that was answered is shown for a while.
      if (answered.has(session.status_reason)) return false;
      assert.match(session.status_reason, /trust|continue/i);
      answered.add(session.status_reason);
      await world.send(id, '1');
      return false;
    },
    180_000,
  );
  return session;
}
