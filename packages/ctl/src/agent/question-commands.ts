import type { CtlCommand } from '../base/command.js';
import { withDaemon } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import type { AnswerFlags, QuestionsFlags } from './questions.js';

export function addQuestions(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('questions')
      .summary('List open questions of agents')
      .description(
        'List the open permission requests and choices of agents, newest first, with the options ' +
          'of each. With --all, also those that were answered, and who answered them.',
      )
      .option('--all', 'Also answered and closed questions')
      .example('ctl agent questions', 'what to decide')
      .example('ctl agent questions --all --json', 'who allowed what, for scripts'),
  )
    .shown(tools)
    .action(async (flags: QuestionsFlags) => {
      const { showQuestions } = await import('./questions.js');
      await showQuestions(flags, tools);
    });
}

export function addAnswer(agent: CtlCommand, tools: Tools): void {
  withDaemon(
    agent
      .command('answer')
      .summary('Answer a question of an agent')
      .description(
        'Answer a permission request or a choice of an agent with one of its options, or with ' +
          '--text if it takes words, and wait until the agent has taken the answer.',
      )
      .argument('<question>', 'question id or id prefix, or an agent that asks only one')
      .argument('[option]', 'id of the option, or its kind such as allow_once or reject')
      .option('--text <text>', 'Answer in words')
      .example('ctl agent answer 01K9ZT4Q 1', 'choose its first option')
      .example('ctl agent answer docs reject', 'refuse what the agent docs asks')
      .exitCode(1, 'no such question or option, it is answered already, or failure'),
  ).action(async (words: string, option: string | undefined, flags: AnswerFlags) => {
    const { answerQuestion } = await import('./questions.js');
    await answerQuestion(words, option, flags, tools);
  });
}
