import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { asTyped } from '../base/command-name.js';
import { wholeNumber, momentAgo } from '../base/arguments.js';
import type { Flags, Tools } from '../base/tools.js';
import { queueApi, type QueueApi, type QueueFlags } from './api.js';
import { counted } from '@millrace/contract/lists';
import { confirmed } from '../base/confirming.js';
import { text as textOf } from 'node:stream/consumers';
import { isUlid, normalizeUlid } from '@millrace/kit/ulid';
import type { Terminal } from '../base/terminal.js';

type Act = 'redrive' | 'purge';

interface SelectionRequest {
  act: Act;
  queue: string;
  ids: readonly string[];
  flags: SelectFlags;
}

const acting =
  (act: Act) =>
  (queue: string, ids: readonly string[], flags: SelectFlags, tools: Tools): Promise<void> =>
    actOnDead(queueApi(flags, tools), { act, queue, ids, flags }, tools);
export const redrive = acting('redrive');
export const purge = acting('purge');

const words = {
  redrive: { verb: 'Redrive', done: 'Redrove' },
  purge: { verb: 'Purge', done: 'Purged' },
} as const;

/** Redrives or purges dead tasks: ids at once, a filter after confirmation. */
async function actOnDead(api: QueueApi, options: SelectionRequest, tools: Tools): Promise<void> {
  const { act, queue, flags } = options;
  const { terminal } = tools;
  const more = redriveOptions(flags);
  const selection = await selectionOf(options.ids, flags, terminal);
  const { err } = terminal;
  const calls = new SelectorCalls(api, act, queue, more, (count) => {
    if (err.isScreen) err.write(`${words[act].done} ${counted(count, 'task')} so far ...\n`);
  });
  if (flags.async === true) {
    await startJob(api, options, { selection, more }, tools);
    return;
  }
  if (flags.dryRun === true) {
    const { count, complete } = await calls.send(selection, { dryRun: true });
    const more = complete ? {} : { complete: false };
    const text = `Would ${act} ${complete ? '' : 'at least '}${counted(count, 'task')} of ${queue}.\n`;
    terminal.show({ count, ...more }, text);
    return;
  }
  let count: number;
  if ('ids' in selection) count = await calls.sendIds(selection.ids);
  else if (flags.yes === true) count = await calls.sendFilter(selection.filter);
  else count = await confirmAndSend(calls, selection.filter, options, tools);
  terminal.show({ count }, `${words[act].done} ${counted(count, 'task')} of ${queue}.\n`);
}

/** The server goes on by itself, also after a restart. */
async function startJob(
  api: QueueApi,
  { act, queue, flags }: SelectionRequest,
  { selection, more }: { selection: Selection; more: RedriveOptions },
  { terminal }: Tools,
): Promise<void> {
  if (flags.dryRun === true) throw new UsageError('Give --async or --dry-run, not both.');
  if ('filter' in selection && flags.yes !== true) {
    throw new UsageError('--async with a filter does not count first. Add --yes to confirm it.');
  }
  const query = { async: 'true' };
  const { body } = await api.call(`${act}Dlq`, { queue, query, body: { ...selection, ...more } });
  if (!('job' in body)) throw new Error('The server did not start a job');
  const { id } = body.job;
  terminal.show(body, asTyped(`Started the job ${id}. Check it with: ctl queue job get ${id}\n`));
}

async function confirmAndSend(
  calls: SelectorCalls,
  filter: Filter,
  { act, queue }: SelectionRequest,
  { terminal }: Tools,
): Promise<number> {
  if (!terminal.in.isScreen) {
    throw new UsageError(
      'Not a terminal, so there is nobody to confirm. Add --yes, or --dry-run to count.',
    );
  }
  const found = await calls.send({ filter }, { dryRun: true });
  if (found.count === 0) return 0;
  const amount = `${found.complete ? '' : 'at least '}${counted(found.count, 'task')}`;
  const warning = act === 'purge' ? ' They are deleted permanently.' : '';
  const question = `${words[act].verb} ${amount} of ${queue}?${warning} [y/N] `;
  if (!(await confirmed(question, terminal))) {
    throw new Refusal('CANCELLED', 'Nothing was changed.');
  }
  // Tasks that died after the count were not confirmed.
  return calls.sendFilter({ ...filter, to: filter.to ?? found.until });
}

const maxIds = 1_000;

interface Sent {
  count: number;
  complete: boolean;
  /** Time of the call on the server's clock: later deaths are not touched. */
  until: string;
}

/** The calls of one redrive or purge, which may need several. */
class SelectorCalls {
  constructor(
    private readonly api: QueueApi,
    private readonly act: Act,
    private readonly queue: string,
    private readonly more: RedriveOptions,
    private readonly progress: (count: number) => void,
  ) {}

  async send(
    selection: { ids: readonly string[] } | { filter: Filter },
    { dryRun = false }: { dryRun?: boolean } = {},
  ): Promise<Sent> {
    const startedAt = systemClock.monotonic();
    const { body, header } = await this.api.call(`${this.act}Dlq`, {
      queue: this.queue,
      body: {
        ...selection,
        ...this.more,
        ...(dryRun ? { dry_run: true } : {}),
      },
      patienceMs,
    });
    if (!('count' in body)) throw new Error('The server started a job that was not asked for');
    const until = sentAt(header('date'), systemClock.monotonic() - startedAt);
    return { count: body.count, complete: body.complete !== false, until };
  }

  async sendIds(ids: readonly string[]): Promise<number> {
    let count = 0;
    for (let at = 0; at < ids.length; at += maxIds) {
      count += (await this.send({ ids: ids.slice(at, at + maxIds) })).count;
    }
    return count;
  }

  /** A long call ends early and is repeated, for what was dead when the first one started. */
  async sendFilter(filter: Filter): Promise<number> {
    const first = await this.send({ filter });
    const rest = { ...filter, to: filter.to ?? first.until };
    let { count } = first;
    for (let last = first; !last.complete; count += last.count) {
      // The next call would start over and get no further.
      if (last.count === 0) throw outOfReach(this.act, count);
      this.progress(count);
      last = await this.send({ filter: rest });
    }
    return count;
  }
}

function outOfReach(act: Act, count: number): Refusal {
  return new Refusal(
    'INCOMPLETE',
    `${words[act].done} ${counted(count, 'task')}; then the server searched for 25 seconds and found ` +
      'no more. If there must be more, use a shorter time range with --from and --to.',
  );
}

/** The server ends a call after 25 seconds. */
const patienceMs = 60_000;

function sentAt(date: string | undefined, elapsedMs: number): string {
  const said = Date.parse(date ?? '');
  // The header has whole seconds: add one, or the latest deaths would be left out.
  const answeredAt = Number.isNaN(said) ? systemClock.now() : said + 1000;
  return new Date(Math.round(answeredAt - elapsedMs)).toISOString();
}

export type SelectFlags = QueueFlags &
  Flags<
    'errorType handlerRef httpStatus from to rate fromStep',
    'all yes dryRun async resetSteps dependents'
  >;

/** What only a redrive takes. */
type RedriveOptions = Pick<
  QueueSchema<'RedriveSelector'>,
  'rate_per_second' | 'from_step' | 'reset_steps' | 'with_dependents'
>;

function redriveOptions(flags: SelectFlags): RedriveOptions {
  const rate = wholeNumber(flags.rate, '--rate');
  if (flags.fromStep !== undefined && flags.resetSteps === true) {
    throw new UsageError('Give --from-step or --reset-steps, not both.');
  }
  return {
    ...(rate !== undefined && { rate_per_second: rate }),
    ...(flags.fromStep !== undefined && { from_step: flags.fromStep }),
    ...(flags.resetSteps === true && { reset_steps: true }),
    ...(flags.dependents === false && { with_dependents: false }),
  };
}

export interface Filter {
  error_type?: string;
  handler_ref?: string;
  http_status?: number;
  from?: string;
  to?: string;
}

/** Parses the selection of dead tasks: ids or a filter, never both; all of them only with --all. */
export type Selection = { ids: readonly string[] } | { filter: Filter };

export async function selectionOf(
  given: readonly string[],
  flags: SelectFlags,
  terminal: Terminal,
): Promise<Selection> {
  const filter = filterOf(flags);
  const isFiltered = Object.keys(filter).length > 0;
  if (given.length > 0) {
    if (isFiltered || flags.all === true) {
      throw new UsageError('Select tasks by id or by a filter, not both.');
    }
    return { ids: await idsOf(given, terminal) };
  }
  if (flags.all === true && isFiltered) {
    throw new UsageError('--all selects every dead task. Remove it, or remove the filter.');
  }
  if (isFiltered || flags.all === true) return { filter };
  throw new UsageError(
    'Select dead tasks: give ids, a filter such as --error-type HTTP_5XX, or --all.',
  );
}

function filterOf(flags: SelectFlags): Filter {
  const status = wholeNumber(flags.httpStatus, '--http-status');
  if (status !== undefined && (status < 100 || status > 599)) {
    throw new UsageError(`--http-status must be 100 to 599, not ${status}.`);
  }
  const from = momentAgo(flags.from, '--from');
  const to = momentAgo(flags.to, '--to');
  return {
    ...(flags.errorType === undefined ? {} : { error_type: flags.errorType }),
    ...(flags.handlerRef === undefined ? {} : { handler_ref: flags.handlerRef }),
    ...(status === undefined ? {} : { http_status: status }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  };
}

export async function idsOf(given: readonly string[], terminal: Terminal): Promise<string[]> {
  const words = given.length === 1 && given[0] === '-' ? await wordsOf(terminal) : given;
  const wrong = words.find((word) => !isUlid(word));
  if (wrong !== undefined) {
    throw new UsageError(`"${wrong}" is not a task id such as 01JD3Z8Q4M7X2N5V9RTBKWCH6E.`);
  }
  return [...new Set(words.map(normalizeUlid))];
}

async function wordsOf(terminal: Terminal): Promise<string[]> {
  const text = await textOf(terminal.in.stream);
  return text.split(/\s+/).filter((word) => word !== '');
}
