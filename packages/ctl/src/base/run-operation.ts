import type { OperationCommand } from '@millrace/contract/lists';
import { systemClock } from '@millrace/kit/clock';
import { Option } from 'commander';
import { shownText } from './list-text.js';
import { wholeNumber, momentAgo } from './arguments.js';
import type { Tools } from './tools.js';

export interface OperationRequest {
  readonly path: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly body?: object;
  readonly patienceMs?: number;
}

/** Calls an operation of a server. */
export type CallOperation = (operation: string, request: OperationRequest) => Promise<unknown>;

type Flags = Readonly<Record<string, unknown>>;

/** Calls the operation of a declared command and shows its response. */
export async function runOperation(
  command: OperationCommand,
  given: { readonly args: readonly string[]; readonly flags: Flags },
  call: CallOperation,
  { terminal, exitWith }: Pick<Tools, 'terminal' | 'exitWith'>,
): Promise<void> {
  const { args, flags } = given;
  const query = queryOf(command, flags);
  const { operation, body, patienceMs, pages, path = [] } = command;
  const request = {
    path: Object.fromEntries(path.map((name, at) => [name, args[at]!])),
    ...(body && { body: body(args) }),
    ...(patienceMs !== undefined && { patienceMs }),
  };
  const read = (more: OperationRequest['query'] = {}) =>
    call(operation, { ...request, query: { ...query, ...more } });
  const answer = (pages ? await readPages(pages, flags, read) : await read()) as never;
  if (command.isFailure?.(answer)) exitWith(1);
  terminal.show(command.json ? command.json(args, answer) : answer, (out) =>
    shownText(command.shows(answer, args), systemClock.now(), out),
  );
}

/** The query parameters that the options of a command set. */
function queryOf({ options = [] }: OperationCommand, flags: Flags): OperationRequest['query'] {
  const entries = options.flatMap(([syntax, , details]) => {
    if (details?.query === undefined) return [];
    const option = new Option(syntax);
    const value = flags[option.attributeName()] as string | undefined;
    return [[details.query, details.isMoment ? momentAgo(value, option.long!) : value] as const];
  });
  return Object.fromEntries(entries);
}

const maxPerPage = 500;

/** Follows the cursors of a list, up to --limit if the command has one. */
export async function readPages(
  { member, limit: standard }: NonNullable<OperationCommand['pages']>,
  flags: Flags,
  read: (more: OperationRequest['query']) => Promise<unknown>,
): Promise<Record<string, unknown>> {
  const limit =
    standard === undefined
      ? Infinity
      : (wholeNumber(flags['limit'] as string | undefined, '--limit') ?? standard);
  const rows: unknown[] = [];
  let next = (flags['cursor'] as string | undefined) ?? '';
  do {
    const wanted = Math.min(maxPerPage, limit - rows.length);
    if (wanted <= 0) break;
    const size = standard === undefined ? {} : { limit: String(wanted) };
    const page = (await read({ ...size, cursor: next === '' ? undefined : next })) as Readonly<
      Record<string, unknown>
    >;
    rows.push(...(page[member] as unknown[]));
    // An old server has one page and no cursor.
    next = (page['next_cursor'] as string | undefined) ?? '';
  } while (next !== '');
  return { [member]: rows, next_cursor: next };
}
