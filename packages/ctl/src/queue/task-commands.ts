import { UsageError } from '@millrace/kit/errors';
import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import { collect } from './arguments.js';
import type { SubmitFlags } from './submission.js';

export function addSubmit(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('submit')
    .summary('Submit a task, or a file of tasks')
    .description(
      'Submit a task, which the server then delivers to its handler. Without --id the task ' +
        'gets a generated id, so that a request whose response was lost is repeated safely. ' +
        'With --batch, each line of the file is a task as in the REST API.',
    )
    .argument('<queue>', 'name of the queue')
    .argument('[handler]', 'handler_ref: the handler that runs it')
    .argument('[stdin]', '- reads the payload from stdin')
    .option('--payload <text>', 'Payload as text')
    .option('--file <file>', 'Payload from this file')
    .option('--content-type <type>', 'Media type of the payload')
    .option('--header <name: value>', 'Header for the handler; may be repeated', collect)
    .option(
      '--id <ulid>',
      'Id of the task; repeating the command with the same id stores nothing new',
    )
    .option('--delay <duration>', 'Not before this much time has passed: 15m')
    .option('--at <time>', 'Not before this time: 2030-01-31T08:00:00Z')
    .option('--priority <number>', '0 to 9, higher first (default: 4)')
    .option('--group <key>', 'Group key: groups take turns, or run in order')
    .option('--expires-at <when>', 'Give up after this long, or at this time: 1h')
    .option('--batch <file>', 'Submit every line of this file; - for stdin')
    .option('--wait', 'Wait until the task has succeeded or is dead')
    .option('--timeout <duration>', 'Stop waiting after this long')
    .example(`ctl queue submit mail mail.send --payload '{"to":"ada"}'`, 'with a payload')
    .example('ctl queue submit mail mail.send - --wait < letter.txt', 'all of stdin')
    .example('ctl queue submit mail --batch tasks.jsonl', 'many at once')
    .exitCode(0, 'stored; with --wait, succeeded')
    .exitCode(1, 'rejected; with --wait, dead; with --batch, some rejected');
  withQueue(command).action(
    async (
      name: string,
      handler: string | undefined,
      stdin: string | undefined,
      flags: QueueFlags & SubmitFlags,
    ) => {
      if (flags.batch !== undefined) {
        const [{ checkBatchFlags }, { submitFile }] = await Promise.all([
          import('./submission.js'),
          import('./batching.js'),
        ]);
        checkBatchFlags(handler, flags);
        await submitFile(queueApi(flags, tools), { queue: name, file: flags.batch }, tools);
        return;
      }
      const [{ submissionOf, waitOf }, { submitTask }] = await Promise.all([
        import('./submission.js'),
        import('./submitting.js'),
      ]);
      const wait = waitOf(flags);
      const task = await submissionOf(handler, stdin, flags, tools.terminal);
      await submitTask(queueApi(flags, tools), { queue: name, task, wait }, tools);
    },
  );
}

interface GetFlags {
  payload?: boolean;
  raw?: boolean;
}

export function addGet(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('get')
    .summary('Show a task, its attempts and why it waits')
    .description(
      'Show a task in any status: why it waits, the result of each attempt, its payload.',
    )
    .argument('<id>', 'id of the task')
    .option('--payload', 'Print only the payload; control characters are escaped on a terminal')
    .option('--raw', 'With --payload: print the raw bytes, even on a terminal')
    .example('ctl queue get 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'as text')
    .example('ctl queue get 01JD3Z8Q4M7X2N5V9RTBKWCH6E --payload > body', 'its payload')
    .example('ctl queue get 01JD3Z8Q4M7X2N5V9RTBKWCH6E --json', 'the response of the REST API')
    .exitCode(1, 'no such task, or failure');
  withQueue(command).action(async (id: string, flags: QueueFlags & GetFlags) => {
    if (flags.raw === true && flags.payload !== true) {
      throw new UsageError('--raw needs --payload.');
    }
    const { showTask } = await import('./task-view.js');
    const payload = flags.payload === true ? (flags.raw === true ? 'raw' : 'text') : undefined;
    await showTask(queueApi(flags, tools), { id, payload }, tools);
  });
}
