import type { QueueSchema } from '@millrace/contract/queue';
import { localOf } from '../../parts/local-time.js';

type Filter = QueueSchema<'SelectorFilter'>;
type Group = QueueSchema<'DlqGroup'>;

const fields = ['error_type', 'handler_ref', 'http_status', 'from', 'to'] as const;

/** The filter in the parameters of the address. */
export function filterIn(text: string): Filter {
  const params = new URLSearchParams(text);
  let filter: Filter = {};
  for (const name of fields) filter = withField(filter, name, params.get(name) ?? '');
  return filter;
}

/** The parameters of a filter; absent fields are removed. */
export function paramsOf(filter: Filter): Record<string, string> {
  return Object.fromEntries(fields.map((name) => [name, String(filter[name] ?? '')]));
}

/** The filter that selects the tasks of a group. */
export function filterOf({ error_type, handler_ref, http_status }: Group): Filter {
  return { error_type, handler_ref, ...(http_status !== null && { http_status }) };
}

/** Whether the filter selects exactly this group. */
export function isOf(filter: Filter, group: Group): boolean {
  const { error_type, handler_ref, http_status } = group;
  return (
    filter.error_type === error_type &&
    filter.handler_ref === handler_ref &&
    (filter.http_status ?? null) === http_status &&
    filter.from === undefined &&
    filter.to === undefined
  );
}

/** The filter with one field set, or without it when the text is empty. */
export function withField(filter: Filter, name: keyof Filter, text: string): Filter {
  const { [name]: _, ...rest } = filter;
  if (text === '') return rest;
  return { ...rest, [name]: name === 'http_status' ? Number(text) : text };
}

/** Describes the filter in the confirmation dialog. */
export function filterText(filter: Filter): string {
  const { error_type, handler_ref, http_status, from, to } = filter;
  const parts = [
    error_type && `with error ${error_type}`,
    handler_ref && `of handler ${handler_ref}`,
    http_status !== undefined && `with HTTP status ${http_status}`,
    from && `dead since ${localOf(from).replace('T', ' ')}`,
    to && `dead before ${localOf(to).replace('T', ' ')}`,
  ].filter(Boolean);
  return parts.length === 0 ? 'all dead tasks of the queue' : `dead tasks ${parts.join(', ')}`;
}
