import { text as textOf } from 'node:stream/consumers';
import { UsageError } from '@millrace/kit/errors';
import { isUlid, normalizeUlid } from '@millrace/kit/ulid';
import { wholeNumber } from '../base/arguments.js';
import type { Terminal } from '../base/terminal.js';
import { momentAgo } from '../base/arguments.js';

export interface SelectFlags {
  errorType?: string;
  handlerRef?: string;
  httpStatus?: string;
  from?: string;
  to?: string;
  all?: boolean;
  yes?: boolean;
  dryRun?: boolean;
  async?: boolean;
  rate?: string;
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
