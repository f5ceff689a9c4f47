import type { QueueSchema } from '@millrace/contract/queue';
import { Refusal, UsageError } from '@millrace/kit/errors';
import type { Flags, Tools } from '../base/tools.js';
import { queueApi, type QueueApi, type QueueFlags } from './api.js';
import { updateOf, type SubmitFlags } from './submission.js';
import { momentAgo } from '../base/arguments.js';
import { counted } from '@millrace/contract/lists';
import { confirmed } from '../base/confirming.js';
import { idsOf } from './selecting.js';

type CancelFlags = QueueFlags & Flags<'reason queue handlerRef groupKey from to', 'all yes dryRun'>;

type Filter = QueueSchema<'CancelFilter'>;
type Shows = Pick<Tools, 'terminal'>;

/** Cancels tasks: ids at once, a filter after confirmation. */
export async function cancelTasks(
  given: readonly string[],
  flags: CancelFlags,
  tools: Tools,
): Promise<void> {
  const api = queueApi(flags, tools);
  const { queue, reason } = flags;
  const filter = filterOf(flags);
  if (queue === undefined) {
    if (filter || flags.all === true || flags.dryRun === true) {
      throw new UsageError('A filter, --all and --dry-run need --queue.');
    }
    if (given.length === 0) throw new UsageError('Name the tasks by id, or select with --queue.');
    const body = reason === undefined ? {} : { reason };
    return changeEach(await idsOf(given, tools.terminal), 'Cancelled', tools, (id) =>
      api.call('cancelTask', { id, body }),
    );
  }
  if (given.length > 0) throw new UsageError('Name tasks by id or select with --queue, not both.');
  if ((filter !== undefined) === (flags.all === true)) {
    throw new UsageError('Select with --handler-ref, --group-key, --from or --to, or with --all.');
  }
  await cancelSelected(api, queue, filter ?? {}, flags, tools);
}

export async function updateTask(
  id: string,
  flags: QueueFlags & SubmitFlags,
  tools: Tools,
): Promise<void> {
  const body = await updateOf(flags, tools.terminal);
  const api = queueApi(flags, tools);
  return changeEach([id], 'Changed', tools, () => api.call('updateTask', { id, body }));
}

export async function runNow(
  given: readonly string[],
  flags: QueueFlags,
  tools: Tools,
): Promise<void> {
  const api = queueApi(flags, tools);
  const ids = await idsOf(given, tools.terminal);
  await changeEach(ids, 'Made due', tools, (id) => api.call('runTaskNow', { id }));
}

/** Stops at the first task that is refused. */
async function changeEach(
  ids: readonly string[],
  done: string,
  { terminal }: Shows,
  change: (id: string) => Promise<{ body: QueueSchema<'Envelope'> }>,
): Promise<void> {
  const changed: QueueSchema<'Envelope'>[] = [];
  for (const id of ids) changed.push((await change(id)).body);
  const shown = changed.length === 1 ? changed[0] : changed;
  terminal.show(shown, `${done}: ${counted(changed.length, 'task')}.\n`);
}

function filterOf(flags: CancelFlags): Filter | undefined {
  const { handlerRef, groupKey } = flags;
  const [from, to] = [momentAgo(flags.from, '--from'), momentAgo(flags.to, '--to')];
  const filter: Filter = {
    ...(handlerRef !== undefined && { handler_ref: handlerRef }),
    ...(groupKey !== undefined && { group_key: groupKey }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  };
  return Object.keys(filter).length > 0 ? filter : undefined;
}

async function cancelSelected(
  api: QueueApi,
  queue: string,
  filter: Filter,
  flags: CancelFlags,
  { terminal }: Tools,
): Promise<void> {
  const { reason } = flags;
  const select = { filter, ...(reason !== undefined && { reason }) };
  const send = async (body: object) => (await api.call('cancelTasks', { queue, body })).body;
  if (flags.dryRun === true) {
    const result = await send({ ...select, dry_run: true });
    const text = `Would cancel ${counted(result.count, 'task')} of ${queue}.\n`;
    terminal.show(result, text);
    return;
  }
  if (flags.yes !== true) {
    if (!terminal.in.isScreen) {
      throw new UsageError(
        'Not a terminal, so there is nobody to confirm. Add --yes, or --dry-run to count.',
      );
    }
    const { count } = await send({ ...select, dry_run: true });
    const question = `Cancel ${counted(count, 'task')} of ${queue}? [y/N] `;
    if (count > 0 && !(await confirmed(question, terminal))) {
      throw new Refusal('CANCELLED', 'Nothing was changed.');
    }
  }
  let count = 0;
  for (;;) {
    const result = await send(select);
    count += result.count;
    if (result.complete !== false) break;
  }
  terminal.show({ count }, `Cancelled ${counted(count, 'task')} of ${queue}.\n`);
}
