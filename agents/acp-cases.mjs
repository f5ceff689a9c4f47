/** What is proven of agents over the Agent Client Protocol, and of questions. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { turn } from './steps.mjs';

export async function overAcp(world, cli, prompt) {
  const { id } = await world.spawn({ backend: cli.name, driver: 'acp', prompt });
  return world.reach(id, ['idle', 'waiting_for_input', 'errored', 'done'], 120_000);
}

/** The open question of the agent that is not among those answered before. */
export async function openQuestion(world, id, answered = new Set()) {
  let question;
  await world.until(
    () => `the agent ${id} asks`,
    async () => {
      const path = `/api/v1/questions?status=open&session_id=${id}`;
      const { questions } = await world.api('GET', path);
      question = questions.find((each) => !answered.has(each.id));
      return question !== undefined;
    },
    120_000,
  );
  return question;
}

/**
 * Lets the agent run a command that needs a permission, and answers over the API. Every question
 * that the CLI is known to ask about the command gets an answer.
 */
async function answerOverApi(world, cli, driver) {
  const file = join(world.elsewhere, `asked-${driver}-${cli.name}.txt`);
  const prompt = `[[tool ${cli.shellTool(`touch ${file}`)}]] [[say allowed it]]`;
  const { id } = await world.spawn({ backend: cli.name, driver, prompt });
  const count = cli.questionsPerCommand ?? 1;
  const answered = new Set();
  while (answered.size < count) {
    const question = await openQuestion(world, id, answered);
    assert.equal(existsSync(file), false, 'the command ran before the answer');
    await allowOnce(world, question);
    answered.add(question.id);
  }
  const session = await world.reach(id, ['idle', 'errored', 'done'], 60_000);
  const end = driver === 'headless' ? 'done' : 'idle';
  assert.equal(session.status, end, `${session.status_reason} ${session.last_error}`);
  assert.ok(existsSync(file), 'the command did not run after the answer');
  await world.stop(id);
  return count === 1 ? undefined : `${count} questions`;
}

async function allowOnce(world, question) {
  assert.equal(question.kind, 'permission', JSON.stringify(question));
  const option = question.options.find(({ kind }) => kind === 'allow_once');
  assert.ok(option, JSON.stringify(question.options));
  const path = `/api/v1/questions/${question.id}:answer`;
  const { status } = await world.api('POST', path, { option_id: option.id });
  assert.equal(status, 'answered');
}

export const acpCases = {
  'acp: turn seen': async (world, cli) => {
    const session = await overAcp(world, cli, '[[wait 2000]] [[say hello]]');
    assert.equal(session.status, 'idle', `${session.status_reason} ${session.last_error}`);
    assert.match(await world.output(session.id), /hello/);
    await turn(world, session.id, '[[say more]] it\'s a "quoted" line');
    assert.match(await world.output(session.id), /more/);
    await world.stop(session.id);
  },

  'acp: failed turn': async (world, cli) => {
    const { id } = await overAcp(world, cli, '[[say hello]]');
    const failed = await turn(world, id, '[[fail 400]] please');
    assert.ok(failed.turn_error, `the turn counts as done: ${failed.status_reason}`);
    const good = await turn(world, id, '[[say better]]');
    assert.equal(good.turn_error ?? null, null);
    await world.stop(id);
  },

  'acp: question answered': (world, cli) => answerOverApi(world, cli, 'acp'),

  'acp: daemon killed and restarted': async (world, cli) => {
    const { id, pid } = await overAcp(world, cli, '[[say hello]]');
    await world.stopDaemon('SIGKILL');
    await world.startDaemon();
    const again = await turn(world, id, '[[say after the restart]]');
    assert.equal(again.pid, pid);
    await world.stop(id);
  },

  'headless: question answered': (world, cli) => answerOverApi(world, cli, 'headless'),

  'tmux: question answered': (world, cli) => answerOverApi(world, cli, 'tmux'),
};
